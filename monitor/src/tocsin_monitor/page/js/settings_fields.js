/** The fields of a signal's settings, for one signal, for many, and for a template. */

import { field, problemLine } from "./dialogs.js";
import { el } from "./dom.js";

/**
 * @typedef {object} Wanted what is filled in; what is empty is left out
 * @property {Record<string, any>} detector
 * @property {number} [silent_after]
 * @property {string} [unit]
 * @property {any} [valid_range]
 * @property {any} [limit_high]
 * @property {any} [limit_low]
 * @property {number | null} [min_deviation]
 * @property {number | null} [min_level]
 * @property {boolean} [no_data_is_zero]
 */

/** @typedef {import("./types.js").Rules} Rules */

/**
 * A valid range in words: "0 to 120", "0 to" without an upper bound; of several features as JSON.
 * @param {Rules["valid_range"] | undefined} range
 */
export function rangeText(range) {
  if (!range) return "";
  return Array.isArray(range) ? `${range[0] ?? ""} to ${range[1] ?? ""}`.trim() : JSON.stringify(range);
}

/**
 * A limit in words; of several features as JSON.
 * @param {Rules["limit_high"] | undefined} limit
 */
const limitText = (limit) => (typeof limit === "object" && limit ? JSON.stringify(limit) : String(limit ?? ""));

/**
 * What the rules say, each with its name.
 * @param {Rules} rules
 * @returns {[string, string][]}
 */
export function ruleWords(rules) {
  const { valid_range: range, min_deviation: deviation, min_level: level, no_data_is_zero: zero } = rules;
  /** @type {[string, string | number | null][]} */
  const found = [
    ["valid range", rangeText(range)],
    ["high limit", limitText(rules.limit_high)],
    ["low limit", limitText(rules.limit_low)],
    ["minimum deviation", deviation],
    ["minimum level", level],
    ["no data", zero ? "means 0" : null],
  ];
  return found.filter(([, value]) => value !== null && value !== "").map(([name, value]) => [name, String(value)]);
}

/**
 * What such words say; what they do not say is left to the monitor to refuse.
 * @param {string} text
 */
function rangeOf(text) {
  if (/^[[{]/.test(text)) return JSON.parse(text);
  const ends = text.split(/\bto\b/).map((end) => (end.trim() ? plain(end) : null));
  return ends.length === 2 ? ends : text;
}

/**
 * What such words say.
 * @param {string} text
 */
const limitOf = (text) => (text.startsWith("{") ? JSON.parse(text) : plain(text));

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
 * @param {Partial<Rules>} [now.rules]
 * @param {string} [automatic] what it means to leave the time of silence empty
 */
export function settingsFields({ settings = {}, silent, unit, rules = {} } = {}, automatic = "empty for automatic") {
  const { alarm_rate: rate, interval, ...others } = settings;
  const input = (/** @type {string} */ name, /** @type {any} */ value) =>
    el("input", { name, value: value ?? "", spellcheck: "false", autocomplete: "off" });
  const fields = {
    rate: input("alarm_rate", rate),
    interval: input("interval", interval),
    silent: el("input", { name: "silent_after", type: "number", min: 0, step: "any", value: silent ?? "" }),
    unit: input("unit", unit),
    range: input("valid_range", rangeText(rules.valid_range)),
    high: input("limit_high", limitText(rules.limit_high)),
    low: input("limit_low", limitText(rules.limit_low)),
    deviation: el("input", { name: "min_deviation", type: "number", min: 0, step: "any", value: rules.min_deviation ?? "" }),
    level: el("input", { name: "min_level", type: "number", step: "any", value: rules.min_level ?? "" }),
    zero: el("input", { name: "no_data_is_zero", type: "checkbox", checked: rules.no_data_is_zero ?? false }),
    others: el(
      "textarea",
      { name: "others", rows: Object.keys(others).length ? 6 : 3, spellcheck: "false" },
      JSON.stringify(others, null, 1),
    ),
  };
  const problem = problemLine();
  /** @type {(name: keyof Rules, text: string, read: (text: string) => any) => object} null removes what there was */
  const rule = (name, text, read) => (text ? { [name]: read(text) } : (rules[name] ?? null) === null ? {} : { [name]: null });

  return {
    elements: [
      field("Alarm rate", fields.rate, "A share of observations, such as 0.001, or a budget, such as 1/day."),
      field("Interval", fields.interval, "The time between observations, such as 1min; budgets need it."),
      field("Silent after", fields.silent, `Seconds without an observation; ${automatic}.`),
      field("Unit", fields.unit),
      field("Valid range", fields.range, "Such as 0 to 120. Other values are reported at once, and not learned."),
      field("High limit", fields.high, "A higher value is reported at once, and a steady rise to it ahead."),
      field("Low limit", fields.low, "A lower value is reported at once, and a steady fall to it ahead."),
      field("Minimum deviation", fields.deviation, "Nobody is told of alarms that go less far."),
      field("Minimum level", fields.level, "Nobody is told of alarms with lower values."),
      el("label", { class: "check" }, fields.zero, "For counts: no data means 0, and is not reported as silence"),
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
        return {
          detector,
          ...(after && !fields.zero.checked && { silent_after: Number(after) }),
          ...(measure && { unit: measure }),
          ...rule("valid_range", fields.range.value.trim(), rangeOf),
          ...rule("limit_high", fields.high.value.trim(), limitOf),
          ...rule("limit_low", fields.low.value.trim(), limitOf),
          ...rule("min_deviation", fields.deviation.value, Number),
          ...rule("min_level", fields.level.value, Number),
          ...rule("no_data_is_zero", fields.zero.checked ? "yes" : "", Boolean),
        };
      } catch {
        problem.refuse('Other settings must be JSON, such as {"window": 2000}.');
        fields.others.focus();
        return null;
      }
    },
  };
}
