/** The reference of a signal: which stretch was good, and how to say so. */

import { request, signalPath } from "./api.js";
import { confirmed } from "./dialogs.js";
import { el } from "./dom.js";
import { counted, moment, span } from "./format.js";
import { attempt } from "./notices.js";
import { allowed } from "./role.js";
import { fromInput, toInput } from "./zone.js";

/** @typedef {import("./types.js").Reference} Reference */

/**
 * Where a signal's reference is in charts.
 * @param {import("./types.js").Signal | undefined} signal
 * @returns {import("./charts/marks.js").Span[]}
 */
export function referenceSpans(signal) {
  if (!signal?.reference) return [];
  const { start, end } = signal.reference;
  return [{ from: moment(start) / 1000, to: moment(end) / 1000, kind: "reference" }];
}

/**
 * Shows what the signal is compared with. Users with the role choose a period, by two times or by dragging in a chart.
 * @param {string} name the signal's
 * @param {() => void} changed
 */
export function referenceBar(name, changed) {
  const path = signalPath(name, "reference");
  const words = el("span", { role: "status" });
  const time = (/** @type {string} */ label) =>
    el("input", { type: "datetime-local", step: 1, required: true, "aria-label": label });
  const [start, end] = [time("Reference from"), time("Reference to")];
  const use = el("button", { type: "submit" }, "Use as reference");
  const remove = el("button", { type: "button", hidden: true, onclick: askToRemove }, "Remove reference");
  const form = el("form", { class: "bar stretch", onsubmit: put }, "From", start, "to", end, use, remove);

  /** @param {Event} event */
  async function put(event) {
    event.preventDefault();
    const [from, until] = [start, end].map((input) => new Date(fromInput(input.value)).toISOString());
    // Learning a long period takes some seconds.
    use.disabled = true;
    if (await attempt(() => request("PUT", path, { start: from, end: until }), "Reference set"))
      changed();
    use.disabled = false;
  }

  async function askToRemove() {
    const sure = await confirmed(
      "Remove reference",
      "The signal is compared with its own moving past again.",
      "Remove",
    );
    if (sure && (await attempt(() => request("DELETE", path), "Reference removed"))) changed();
  }

  return {
    element: el("div", { class: "bar reference" }, words, allowed("write") && form),
    /** @param {Reference | null} reference */
    show(reference) {
      remove.hidden = !reference;
      words.textContent = reference ? inWords(reference) : "Compared with its own past.";
    },
    /**
     * Fill in the times of a stretch, in seconds since 1970, so that all of it is within.
     * @param {number} from
     * @param {number} to
     */
    choose(from, to) {
      start.value = toInput(Math.floor(from) * 1000);
      end.value = toInput(Math.ceil(to) * 1000);
    },
  };
}

/** @param {Reference} reference */
function inWords({ start, end, observations, created_by: by }) {
  return `Compared with its reference: ${span(start, end)}, ${counted(observations, "observation")}${by ? `, marked by ${by}` : ""}.`;
}
