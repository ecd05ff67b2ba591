/** What a signal's detector has learned, whether it keeps its promise, and its settings. */

import { intervalPlot } from "./charts/interval.js";
import { weightsChart } from "./charts/weights_chart.js";
import { el, fact } from "./dom.js";
import { bytes, count, duration, number } from "./format.js";
import { auditInWords } from "./rates.js";

/** @typedef {import("./types.js").Details} Details */

/**
 * @param {Details} details
 * @param {HTMLElement} box where it is going to be shown
 */
export function signalDetails(details, box) {
  const weights = weightsChart(details.weights);
  const learned = details.weights.some((row) => row.some((weight) => weight !== null && weight > 0));
  const element = [auditPanel(details), weightsPanel(learned ? weights.element : null), settingsPanel(details)];
  if (learned) {
    box.replaceChildren(...element); // charts have to know how wide they may be
    weights.draw();
  }
  return { element, close: weights.close };
}

/** @param {Details} details */
function auditPanel({ audit, guarantee, settings }) {
  const counted = settings.promise === "observations" ? "alarms" : "incidents";
  const finding = audit.finding.replaceAll(" ", "-");
  return el(
    "section",
    { class: "panel" },
    el("h2", {}, "Is the promise kept?"),
    intervalPlot(audit),
    el("p", { class: `audit ${finding}` }, auditInWords(audit)),
    el(
      "p",
      { class: "muted" },
      `${count(audit.alarms)} ${counted} in ${count(audit.observations)} observations since warm-up. `,
      audit.faults ? `${count(audit.faults)} of them, labelled as faults, do not count. ` : "",
      `The bounds hold at all times (${number(audit.level * 100)}%). True faults count until they are labelled.`,
    ),
    guarantee && el("p", { class: "muted" }, guarantee),
  );
}

/** @param {HTMLElement | null} chart */
function weightsPanel(chart) {
  return el(
    "section",
    { class: "panel" },
    el("h2", {}, "Learned weights"),
    chart ?? el("p", {}, "None learned yet."),
    chart &&
      el(
        "p",
        { class: "muted" },
        "How much a past error counts when a new one is judged, by its age; the mean over the scores of errors.",
      ),
  );
}

/** @param {Details} details */
function settingsPanel({ settings, silent_after: silent, memory_bytes: memory }) {
  const text = (/** @type {any} */ value) =>
    value === null
      ? "none"
      : typeof value === "object"
        ? JSON.stringify(value)
        : typeof value === "number"
          ? number(value)
          : String(value);
  return el(
    "section",
    { class: "panel" },
    el("h2", {}, "Settings"),
    Object.keys(settings).length === 0 && el("p", {}, "All defaults."),
    el(
      "dl",
      { class: "facts" },
      ...Object.entries(settings).map(([name, value]) => fact(name.replaceAll("_", " "), text(value))),
      fact("silent after", silent === null ? "automatic" : duration(silent * 1000)),
      fact("memory", bytes(memory)),
    ),
  );
}
