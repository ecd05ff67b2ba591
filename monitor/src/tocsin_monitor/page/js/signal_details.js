/** What a signal's detector has learned, whether it keeps its promise, and its settings. */

import { intervalPlot } from "./charts/interval.js";
import { weightsChart, weightsLegend } from "./charts/weights_chart.js";
import { detectablePanel } from "./detectable.js";
import { el, fact } from "./dom.js";
import { bytes, count, counted, duration, number } from "./format.js";
import { auditInWords } from "./rates.js";
import { allowed } from "./role.js";
import { ruleWords } from "./settings_fields.js";
import { settingsForm } from "./settings_form.js";

/** @typedef {import("./types.js").Details} Details */

/**
 * @param {import("./types.js").Signal} signal
 * @param {Details} details
 * @param {HTMLElement} box where it is going to be shown
 */
export function signalDetails(signal, details, box) {
  const weights = weightsChart(details.weights);
  const learned = details.weights.some((row) => row.some((weight) => weight !== null && weight > 0));
  const audit = el("section", { class: "panel", "aria-live": "off" }, ...auditContent(details));
  const legend = weightsLegend(signal.features);
  const settings = settingsPanel(signal, details);
  const faults = detectablePanel(signal.name);
  const element = [audit, faults.element, weightsPanel(learned ? [legend, weights.element] : null), settings.element];
  if (learned) {
    box.replaceChildren(...element); // charts have to know how wide they may be
    weights.draw();
  }
  return {
    element,
    /** What has changed since: the audit. The rest would jump under who reads it, or lose what is being filled in.
     * @param {Details} newest
     */
    update: (newest) => audit.replaceChildren(...auditContent(newest)),
    close: () => {
      weights.close();
      faults.close();
      settings.stop();
    },
  };
}

/** @param {Details} details */
function auditContent({ audit, guarantee, settings }) {
  const promised = settings.promise === "observations" ? "alarm" : "incident";
  const finding = audit.finding.replaceAll(" ", "-");
  return [
    el("h2", {}, "Is the promise kept?"),
    intervalPlot(audit),
    el("p", { class: `audit ${finding}` }, auditInWords(audit)),
    audit.observations > 0 && el(
      "p",
      { class: "muted" },
      `${counted(audit.alarms, promised)} in ${counted(audit.observations, "observation")} since warm-up. `,
      audit.faults ? `${count(audit.faults)} of them, labelled as faults, do not count. ` : "",
      `The bounds hold at all times (${number(audit.level * 100)}%). True faults count until they are labelled.`,
    ),
    guarantee && guaranteed(guarantee),
  ].filter((part) => part instanceof Node);
}

/**
 * What is promised under which assumption, for those who want to know it exactly.
 * @param {string} guarantee
 */
function guaranteed(guarantee) {
  const parts = guarantee.split("; ").map((part) => el("li", {}, part));
  return el("details", { class: "muted" }, el("summary", {}, "What exactly is promised"), el("ul", {}, ...parts));
}

/** @param {(HTMLElement | null)[] | null} chart with its legend */
function weightsPanel(chart) {
  return el(
    "section",
    { class: "panel" },
    el("h2", {}, "Learned weights"),
    ...(chart ?? [el("p", {}, "None learned yet.")]),
    chart &&
      el(
        "p",
        { class: "muted" },
        "How much a past error counts when a new one is judged, by its age; the mean over the scores of errors.",
      ),
  );
}

/**
 * The settings, and a form to change them.
 * @param {import("./types.js").Signal} signal
 * @param {Details} details
 */
function settingsPanel(signal, details) {
  let stop = () => {};
  const element = el("section", { class: "panel" });
  const show = () => {
    stop();
    element.replaceChildren(...settingsContent(details), ...(allowed("write") ? [change] : []));
  };
  const edit = () => {
    const form = settingsForm(signal.name, details, signal.unit, show);
    stop = form.stop;
    element.replaceChildren(el("h2", {}, "Settings"), form.element);
    form.element.querySelector("input")?.focus();
  };
  const change = el("button", { type: "button", onclick: edit }, "Change settings");
  show();
  return { element, stop: () => stop() };
}

/** @param {Details} details */
function settingsContent({ settings, silent_after: silent, rules, memory_bytes: memory }) {
  const text = (/** @type {any} */ value) =>
    value === null
      ? "none"
      : typeof value === "object"
        ? JSON.stringify(value)
        : typeof value === "number"
          ? number(value)
          : String(value);
  return [
    el("h2", {}, "Settings"),
    ...(Object.keys(settings).length ? [] : [el("p", {}, "All defaults.")]),
    el(
      "dl",
      { class: "facts" },
      ...Object.entries(settings).map(([name, value]) => fact(name.replaceAll("_", " "), text(value))),
      ...ruleWords(rules).map(([name, value]) => fact(name, value)),
      ...(rules.no_data_is_zero ? [] : [fact("silent after", silent === null ? "automatic" : duration(silent * 1000))]),
      fact("memory", bytes(memory)),
    ),
  ];
}
