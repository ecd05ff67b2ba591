/** Adding a maintenance window: observations in it are kept, but neither judged nor learned. */

import { request } from "./api.js";
import { ask, field, problemLine } from "./dialogs.js";
import { el } from "./dom.js";
import { fleet } from "./fleet.js";
import { counted, duration, span } from "./format.js";
import { attempt, notice } from "./notices.js";
import { fits } from "./pattern.js";
import { fromInput, isUtc, toInput } from "./zone.js";

/** @typedef {import("./types.js").Maintenance} Maintenance */

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
 * The field of a pattern, which says how many signals match.
 * @param {string} pattern the initial one
 */
function patternField(pattern) {
  const input = el("input", {
    name: "pattern",
    required: true,
    value: pattern,
    placeholder: "plant/line-3/*",
    spellcheck: "false",
    autocomplete: "off",
  });
  const fitting = el("small", { class: "muted", role: "status" });
  const look = () => {
    const many = [...fleet.signals.keys()].filter((name) => fits(input.value, name)).length;
    fitting.textContent = `* stands for anything, ? for one character. Matches ${counted(many, "signal")} now.`;
  };
  input.addEventListener("input", look);
  look();
  return { input, element: el("div", {}, field("Signals", input), fitting) };
}

/**
 * Ask for a window and add it. Returns whether one was added.
 * @param {string} pattern the initial pattern
 */
export async function askForMaintenance(pattern) {
  const which = patternField(pattern);
  const window = await askForWindow("Maintenance window", [which.element]);
  const body = window && { pattern: which.input.value, ...window };
  return body !== null && attempt(() => request("POST", "/maintenance", body), "Maintenance window added");
}

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/** Milliseconds without a key before the preview is asked for. */
const PAUSE = 300;

/** Ask for a window that recurs, with a preview of the next times, and add it. Returns whether one was added. */
export async function askForRecurring() {
  const which = patternField("");
  const zone = isUtc() ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
  const days = DAYS.map((day) => el("input", { type: "checkbox", name: "day", value: day, checked: day === "sun" }));
  const time = (/** @type {string} */ name, /** @type {string} */ value) =>
    el("input", { name, type: "time", required: true, value });
  const [from, until] = [time("from", "02:00"), time("until", "04:00")];
  const cron = el("input", { name: "schedule", placeholder: "0 2 1 * *", spellcheck: "false", autocomplete: "off" });
  const place = el("input", { name: "time_zone", required: true, value: zone, spellcheck: "false" });
  const reason = el("input", { name: "reason", maxlength: 500 });
  const preview = el("div", { role: "status" });
  const problem = problemLine();
  let timer = 0;

  const read = () => {
    const chosen = days.filter(({ checked }) => checked).map(({ value }) => value);
    const [start, end] = [from, until].map(({ value }) => value.split(":").map(Number));
    const minutes = (end[0] - start[0]) * 60 + end[1] - start[1];
    return {
      pattern: which.input.value || "*",
      schedule: cron.value.trim() || `${start[1]} ${start[0]} * * ${chosen.join(",") || "*"}`,
      duration: 60 * (minutes > 0 ? minutes : minutes + 24 * 60),
      time_zone: place.value.trim(),
      reason: reason.value.trim(),
    };
  };
  const look = async () => {
    problem.clear();
    try {
      preview.replaceChildren(occurrenceList((await request("POST", "/maintenance/preview", read())).occurrences));
    } catch (error) {
      preview.replaceChildren();
      problem.refuse(error);
    }
  };
  for (const input of [...days, from, until, cron, place])
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => void look(), PAUSE);
    });
  void look();
  const added = await ask({
    title: "Recurring maintenance",
    body: [
      el("p", { class: "muted" }, "Each time, observations are kept, but neither judged nor learned."),
      which.element,
      el(
        "fieldset",
        { class: "days" },
        el("legend", {}, "On"),
        ...DAYS.map((day, at) => el("label", { class: "check" }, days[at], day[0].toUpperCase() + day.slice(1))),
      ),
      el("div", { class: "pair" }, field("From", from), field("Until", until)),
      field("Or as in cron", cron, "Minute, hour, day, month, day of the week; it then lasts as long as above."),
      field("Time zone", place),
      field("Reason", reason),
      preview,
      problem.element,
    ],
    accept: "Add",
    answer: async () => {
      try {
        return await request("POST", "/maintenance", read());
      } catch (error) {
        problem.refuse(error);
        return null;
      }
    },
  });
  clearTimeout(timer);
  if (added) notice("Recurring maintenance added");
  return added !== null;
}

/**
 * When a window recurs, in words.
 * @param {Maintenance} window
 */
export function recurrence({ schedule, duration: seconds, time_zone: zone }) {
  const [minute, hour, date, month, week] = (schedule ?? "").split(" ");
  const simple = [minute, hour].every((part) => /^\d+$/.test(part)) && date === "*" && month === "*";
  const days = week === "*" ? "every day" : `every ${week.replaceAll(",", ", ")}`;
  const start = simple ? `${days} at ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}` : `at ${schedule}`;
  return `${start} (${zone}), for ${duration((seconds ?? 0) * 1000)}`;
}

/**
 * The next times of a window.
 * @param {Maintenance["occurrences"]} occurrences
 */
export function occurrenceList(occurrences) {
  return el(
    "details",
    { open: true },
    el("summary", {}, occurrences.length ? `Next ${counted(occurrences.length, "time")}` : "It does not recur again"),
    el("ul", { class: "occurrences" }, ...occurrences.map(({ start, end }) => el("li", {}, span(start, end)))),
  );
}
