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
 * Ask for a window and add it. Returns whether one was added.
 * @param {string} pattern the initial pattern
 */
export async function askForMaintenance(pattern) {
  const now = Date.now();
  const which = el("input", {
    name: "pattern",
    required: true,
    value: pattern,
    spellcheck: "false",
    autocomplete: "off",
  });
  const start = el("input", { name: "start", type: "datetime-local", step: 1, required: true, value: toInput(now) });
  const end = el("input", { name: "end", type: "datetime-local", step: 1, required: true, value: toInput(now + HOUR) });
  const reason = el("input", { name: "reason", maxlength: 500 });
  const fitting = el("small", { class: "muted", role: "status" });
  const look = () => {
    const many = [...fleet.signals.keys()].filter((name) => fits(which.value, name)).length;
    fitting.textContent = `* stands for anything, ? for one character. Matches ${counted(many, "signal")} now.`;
  };
  const lengths = LENGTHS.map(([words, length]) =>
    el("button", { type: "button", onclick: () => (end.value = toInput(fromInput(start.value) + length)) }, words),
  );
  which.addEventListener("input", look);
  end.addEventListener("input", () => end.setCustomValidity(""));
  look();
  const body = await ask({
    title: "Maintenance window",
    body: [
      el("p", { class: "muted" }, "Observations in this window are kept, but neither judged nor learned."),
      el("div", {}, field("Signals", which), fitting),
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
      const [from, until] = [start.value, end.value].map((time) => new Date(fromInput(time)).toISOString());
      return { pattern: which.value, start: from, end: until, reason: reason.value.trim() };
    },
  });
  return body !== null && attempt(() => request("POST", "/maintenance", body), "Maintenance window added");
}
