/** A row of the overview: a signal, or a level of signals, with a box to select it. */

import { el } from "./dom.js";
import { makeLevelRow, updateLevelRow } from "./level_row.js";
import { signalRow } from "./signal_row.js";

/** @typedef {import("./tree.js").TreeRow} TreeRow */

/**
 * @param {() => Map<string, import("./types.js").Incident>} incidents the open ones, by signal
 * @param {import("./selection.js").Selection} selection
 * @param {Parameters<typeof makeLevelRow>[2]} levels
 * @returns {import("./windowed.js").RowKind<TreeRow>}
 */
export function overviewRow(incidents, selection, levels) {
  const signals = signalRow(incidents);
  return {
    key: (item) => ("signal" in item ? `signal ${item.signal.name}` : `level ${item.level.path}`),
    make: (item) => {
      const named = "signal" in item ? item.signal.name : item.level.path;
      const check = el("input", { type: "checkbox", class: "choose", "aria-label": `Select ${named}` });
      if ("level" in item) {
        check.addEventListener("change", () => selection.setLevel(named, check.checked));
        return makeLevelRow(item.level, check, levels);
      }
      check.addEventListener("change", () => selection.set(named, check.checked));
      const row = signals.make(item.signal);
      row.prepend(check);
      return row;
    },
    update: (row, item) => {
      const check = /** @type {HTMLInputElement} */ (row.firstChild);
      if ("signal" in item) {
        check.checked = selection.has(item.signal.name);
        row.style.setProperty("--depth", String(item.depth));
        signals.update(row, item.signal);
        const name = /** @type {HTMLElement} */ (row.querySelector(".name"));
        if (name.textContent !== item.label) name.textContent = item.label;
      } else {
        check.checked = selection.hasLevel(item.level.path);
        updateLevelRow(row, item.level, item.open);
      }
    },
    paint: (rows) =>
      signals.paint(
        rows.flatMap(([row, item]) =>
          "signal" in item
            ? [/** @type {[HTMLElement, import("./types.js").Signal]} */ ([row, item.signal])]
            : [],
        ),
      ),
  };
}
