/** The fields of a signal's settings, for one signal, for many, and for a template. */

import { field, problemLine } from "./dialogs.js";
import { el } from "./dom.js";

/**
 * @typedef {object} Wanted what is filled in; what is empty is left out
 * @property {Record<string, any>} detector
 * @property {number} [silent_after]
 * @property {string} [unit]
 */

/**
 * A number if it is one, else the text: an alarm rate may be 0.001 or 1/day.
 * @param {string} text
 */
const plain = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text.trim());

/**
 * @param {object} [now] the settings to begin with
 * @param {Record<string, any>} [now.settings]
 * @param {number | null} [now.silent]
 * @param {string | null} [now.unit]
 * @param {string} [automatic] what it means to leave the time of silence empty
 */
export function settingsFields({ settings = {}, silent, unit } = {}, automatic = "empty for automatic") {
  const { alarm_rate: rate, interval, ...others } = settings;
  const input = (/** @type {string} */ name, /** @type {any} */ value) =>
    el("input", { name, value: value ?? "", spellcheck: "false", autocomplete: "off" });
  const fields = {
    rate: input("alarm_rate", rate),
    interval: input("interval", interval),
    silent: el("input", { name: "silent_after", type: "number", min: 0, step: "any", value: silent ?? "" }),
    unit: input("unit", unit),
    others: el(
      "textarea",
      { name: "others", rows: Object.keys(others).length ? 6 : 3, spellcheck: "false" },
      JSON.stringify(others, null, 1),
    ),
  };
  const problem = problemLine();

  return {
    elements: [
      field("Alarm rate", fields.rate, "A share of observations, such as 0.001, or a budget, such as 1/day."),
      field("Interval", fields.interval, "The time between observations, such as 1min; budgets need it."),
      field("Silent after", fields.silent, `Seconds without an observation; ${automatic}.`),
      field("Unit", fields.unit),
      field("Other settings", fields.others, "JSON; see the documentation of the detector."),
    ],
    problem,

    /**
     * What is filled in; null if it is not complete.
     * @returns {Wanted | null}
     */
    read() {
      problem.clear();
      try {
        const detector = JSON.parse(fields.others.value || "{}");
        if (fields.rate.value.trim()) detector.alarm_rate = plain(fields.rate.value);
        if (fields.interval.value.trim()) detector.interval = plain(fields.interval.value);
        const [after, measure] = [fields.silent.value, fields.unit.value.trim()];
        return { detector, ...(after && { silent_after: Number(after) }), ...(measure && { unit: measure }) };
      } catch {
        problem.refuse('Other settings must be JSON, such as {"window": 2000}.');
        fields.others.focus();
        return null;
      }
    },
  };
}
