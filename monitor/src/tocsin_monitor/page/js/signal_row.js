/** A signal in the overview. */

import { drawSparkline } from "./charts/sparkline.js";
import { el, nameOf } from "./dom.js";
import { fleet, perFeature } from "./fleet.js";
import { ago, count, pValue, values } from "./format.js";
import { icon } from "./icons.js";
import { story } from "./incidents.js";
import { STATE_WORDS, stateOf } from "./order.js";
import { signalHash } from "./router.js";
import { colour } from "./theme.js";

/** @typedef {import("./types.js").Signal} Signal */
/** @typedef {import("./types.js").Incident} Incident */

/**
 * @param {() => Map<string, Incident>} incidents the open ones, by signal
 * @returns {import("./windowed.js").RowKind<Signal>}
 */
export function signalRow(incidents) {
  return {
    key: (signal) => signal.name,
    make: (signal) =>
      el(
        "div",
        { class: "row" },
        el("span", { class: "state" }),
        el(
          "span",
          { class: "title" },
          el("a", { href: signalHash(signal.name) }, nameOf(signal.name)),
          el("small", { class: "muted" }),
        ),
        el("canvas", { "aria-hidden": "true" }),
        el("span", { class: "value live-value" }),
        el("span", { class: "p live-value" }),
        el("span", { class: "seen muted" }),
      ),
    update: (row, signal) => update(row, signal, incidents()),
    paint,
  };
}

/**
 * @param {HTMLElement} row
 * @param {Signal} signal
 * @param {Map<string, Incident>} incidents
 */
function update(row, signal, incidents) {
  const [, stateBox, title, , value, p, seen] = /** @type {HTMLElement[]} */ ([...row.children]);
  const state = stateOf(signal, incidents);
  if (row.dataset.state !== state) {
    row.dataset.state = state;
    stateBox.replaceChildren(icon(state), STATE_WORDS[state]);
  }
  const small = /** @type {HTMLElement} */ (title.lastChild);
  write(small, remark(signal, state, incidents.get(signal.name)));
  write(value, values(perFeature(signal.value), signal.unit));
  write(p, pValue(signal.p));
  write(seen, ago(signal.last_time));
}

/**
 * Draw the sparklines that changed. All sizes are read first: alternating reading and drawing would lay out the page again
 * for every row.
 * @param {[HTMLElement, Signal][]} rows
 */
function paint(rows) {
  const canvases = rows.map(([row]) => /** @type {HTMLCanvasElement} */ (row.querySelector("canvas")));
  const sizes = canvases.map(({ clientWidth, clientHeight }) => [clientWidth, clientHeight]);
  rows.forEach(([, signal], at) => {
    const [width, height] = sizes[at];
    if (signal.recent === null) fleet.wantRecent(signal.name);
    const drawn = `${signal.recent ? signal.last_time : ""} ${width} ${height} ${colour("--value")}`;
    if (canvases[at].dataset.drawn === drawn) return;
    canvases[at].dataset.drawn = drawn;
    drawSparkline(canvases[at], signal.recent ?? [], width, height);
  });
}

/**
 * Write only changed texts, so that the others are not laid out again.
 * @param {HTMLElement} box
 * @param {string} text
 */
function write(box, text) {
  if (box.textContent === text) return;
  box.textContent = text;
  if (box.tagName === "SMALL") box.title = text; // it may be cut off
}

/**
 * @param {Signal} signal
 * @param {import("./order.js").State} state
 * @param {Incident | undefined} incident
 */
function remark(signal, state, incident) {
  if (signal.quarantined) return signal.quarantined;
  if (incident) return incident.acknowledged ? `acknowledged; ${story(incident)}` : story(incident);
  if (state === "silent") return "no more observations";
  if (state === "maintenance") return "kept, but neither judged nor learned";
  if (state === "learning") return `learning, ${count(signal.observations)} of ${count(signal.warm_up)}`;
  return signal.features.length > 1 ? signal.features.join(", ") : "";
}
