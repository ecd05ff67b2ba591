/** Adding a maintenance window: observations in it are kept, but neither judged nor learned. */

import { request } from "./api.js";
import { ask, field } from "./dialogs.js";
import { el } from "./dom.js";
import { fleet } from "./fleet.js";
import { counted } from "./format.js";
import { attempt } from "./notices.js";
import { fits } from "./pattern.js";
import { fromInput, toInput } from "./zone.js";

const HOUR = 3_600_000;
const LENGTHS = /** @type {[string, number][]} */ ([
  ["1 h", HOUR],
  ["4 h", 4 * HOUR],
  ["1 day", 24 * HOUR],
  ["1 week", 168 * HOUR],
]);

/**
 * Ask from when to when, and why; null if cancelled.
 * @param {string} title
 * @param {import("./dom.js").Child[]} [more] what else is to be filled in
 */
export function askForWindow(title, more = []) {
  const now = Date.now();
  const time = (/** @type {string} */ name, /** @type {number} */ value) =>
    el("input", { name, type: "datetime-local", step: 1, required: true, value: toInput(value) });
  const [start, end] = [time("start", now), time("end", now + HOUR)];
  const reason = el("input", { name: "reason", maxlength: 500 });
  const lengths = LENGTHS.map(([words, length]) =>
    el("button", { type: "button", onclick: () => (end.value = toInput(fromInput(start.value) + length)) }, words),
  );
  end.addEventListener("input", () => end.setCustomValidity(""));
  return ask({
    title,
    body: [
      el("p", { class: "muted" }, "Observations in this window are kept, but neither judged nor learned."),
      ...more,
      field("From", start),
      field("Until", end),
      el("div", { class: "actions", role: "group", "aria-label": "Length" }, ...lengths),
      field("Reason", reason),
    ],
    accept: "Add",
    answer: () => {
      if (!(fromInput(end.value) > fromInput(start.value))) {
        end.setCustomValidity("The end must be after the start.");
        end.reportValidity();
        return null;
      }
      const [from, until] = [start.value, end.value].map((text) => new Date(fromInput(text)).toISOString());
      return { start: from, end: until, reason: reason.value.trim() };
    },
  });
}

/**
 * Ask for a window and add it. Returns whether one was added.
 * @param {string} pattern the initial pattern
 */
export async function askForMaintenance(pattern) {
  const which = el("input", {
    name: "pattern",
    required: true,
    value: pattern,
    placeholder: "plant/line-3/*",
    spellcheck: "false",
    autocomplete: "off",
  });
  const fitting = el("small", { class: "muted", role: "status" });
  const look = () => {
    const many = [...fleet.signals.keys()].filter((name) => fits(which.value, name)).length;
    fitting.textContent = `* stands for anything, ? for one character. Matches ${counted(many, "signal")} now.`;
  };
  which.addEventListener("input", look);
  look();
  const window = await askForWindow("Maintenance window", [el("div", {}, field("Signals", which), fitting)]);
  const body = window && { pattern: which.value, ...window };
  return body !== null && attempt(() => request("POST", "/maintenance", body), "Maintenance window added");
}
