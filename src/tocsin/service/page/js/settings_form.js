/** Changing a signal's settings: what would change can be tried on stored observations first. */

import { request, signalPath } from "./api.js";
import { field } from "./dialogs.js";
import { el } from "./dom.js";
import { notice } from "./notices.js";
import { tryOut } from "./trial.js";

/**
 * A number if it is one, else the text: an alarm rate may be 0.001 or 1/day.
 * @param {string} text
 */
const plain = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text.trim());

/**
 * @param {string} name the signal's
 * @param {import("./types.js").Details} details
 * @param {string | null} unit
 * @param {() => void} close
 */
export function settingsForm(name, { settings, silent_after: silent }, unit, close) {
  const { alarm_rate: rate, interval, ...others } = settings;
  const input = (/** @type {string} */ id, /** @type {any} */ value) =>
    el("input", { name: id, value: value ?? "", spellcheck: "false", autocomplete: "off" });
  const fields = {
    rate: input("alarm_rate", rate),
    interval: input("interval", interval),
    silent: el("input", { name: "silent_after", type: "number", min: 0, step: "any", value: silent ?? "" }),
    unit: input("unit", unit),
    others: el("textarea", { name: "others", rows: 6, spellcheck: "false" }, JSON.stringify(others, null, 1)),
  };
  const result = el("p", { role: "status", class: "trial" });
  const problem = el("p", { role: "alert", class: "failed" });
  const end = el("button", { type: "button", hidden: true, onclick: () => running?.abort() }, "End trial");
  const attempt = el("button", { type: "button", onclick: () => void start() }, "Try on stored observations");
  /** @type {AbortController | null} */
  let running = null;

  /** The detector's settings as they are filled in; null if they are not JSON. */
  function detector() {
    problem.textContent = "";
    try {
      const wanted = JSON.parse(fields.others.value || "{}");
      if (fields.rate.value.trim()) wanted.alarm_rate = plain(fields.rate.value);
      if (fields.interval.value.trim()) wanted.interval = plain(fields.interval.value);
      return wanted;
    } catch {
      problem.textContent = "Other settings must be JSON, such as {\"window\": 2000}.";
      fields.others.focus();
      return null;
    }
  }

  /** @param {unknown} error what the monitor said */
  function refuse(error) {
    problem.textContent = error instanceof Error ? error.message : String(error);
  }

  async function start() {
    const wanted = detector();
    if (wanted === null) return;
    running = new AbortController();
    [end.hidden, attempt.disabled] = [false, true];
    try {
      await tryOut(name, wanted, running.signal, (words) => (result.textContent = words));
    } catch (error) {
      result.textContent = "";
      refuse(error);
    }
    running = null;
    [end.hidden, attempt.disabled] = [true, false];
  }

  /** @param {Event} event */
  async function apply(event) {
    event.preventDefault();
    const wanted = detector();
    if (wanted === null) return;
    const [after, measure] = [fields.silent.value, fields.unit.value.trim()];
    try {
      await request("PUT", signalPath(name), {
        detector: wanted,
        ...(after && { silent_after: Number(after) }),
        ...(measure && { unit: measure }),
      });
    } catch (error) {
      return refuse(error);
    }
    notice("Settings changed");
    close();
  }

  const element = el(
    "form",
    { class: "settings-form", onsubmit: (/** @type {Event} */ event) => void apply(event) },
    field("Alarm rate", fields.rate, "A share of observations, such as 0.001, or a budget, such as 1/day."),
    field("Interval", fields.interval, "The time between observations, such as 1min; budgets need it."),
    field("Silent after", fields.silent, "Seconds without an observation; empty for automatic."),
    field("Unit", fields.unit),
    field("Other settings", fields.others, "JSON; see the documentation of the detector."),
    problem,
    result,
    el(
      "div",
      { class: "actions" },
      attempt,
      end,
      el("button", { type: "submit", class: "primary" }, "Apply"),
      el("button", { type: "button", onclick: () => close() }, "Cancel"),
    ),
    el("p", { class: "muted" }, "With new settings, the detector relearns from the stored observations."),
  );
  return { element, stop: () => running?.abort() };
}
