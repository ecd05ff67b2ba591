/** What people do with an incident: acknowledge, snooze, label. */

import { request } from "./api.js";
import { ask, field } from "./dialogs.js";
import { el } from "./dom.js";
import { fleet } from "./fleet.js";
import { isSnoozed } from "./incidents.js";
import { attempt } from "./notices.js";
import { fromInput, toInput } from "./zone.js";

/** @typedef {import("./types.js").Incident} Incident */

const HOUR = 3600;
const SNOOZES = /** @type {[string, number][]} */ ([
  ["1 hour", HOUR],
  ["4 hours", 4 * HOUR],
  ["1 day", 24 * HOUR],
]);
const LABELS = /** @type {[string, string][]} */ ([
  ["fault", "Fault: something was wrong"],
  ["false alarm", "False alarm: nothing was wrong"],
  ["expected", "Expected: unusual, but known"],
  ["", "No label"],
]);

/**
 * Send a change, and show the incident as it is afterwards.
 * @param {Incident} incident
 * @param {string} method
 * @param {string} part
 * @param {object | undefined} body
 * @param {string} done
 */
function send(incident, method, part, body, done) {
  return attempt(async () => {
    const path = `/incidents/${incident.id}`;
    const answer = await request(method, `${path}/${part}`, body);
    fleet.takeIncident(answer?.id === incident.id ? answer : await request("GET", path));
  }, done);
}

/** @param {Incident} incident */
export function toggleAcknowledged(incident) {
  return incident.acknowledged
    ? send(incident, "DELETE", "acknowledge", undefined, "No longer acknowledged")
    : send(incident, "POST", "acknowledge", {}, "Acknowledged");
}

/** @param {Incident} incident */
export async function snooze(incident) {
  if (isSnoozed(incident)) return send(incident, "DELETE", "snooze", undefined, "No longer snoozed");
  const until = el("input", {
    type: "datetime-local",
    step: 1,
    value: toInput(Date.now() + 2 * HOUR * 1000),
    "aria-label": "Until",
  });
  const choices = [
    ...SNOOZES.map(([words, seconds]) => ({ words, body: () => ({ seconds }) })),
    { words: "Until", body: () => ({ until: new Date(fromInput(until.value)).toISOString() }) },
  ];
  const radios = choices.map((_, at) => el("input", { type: "radio", name: "snooze", value: at, checked: at === 0 }));
  until.addEventListener("focus", () => (radios[radios.length - 1].checked = true));
  const body = await ask({
    title: "Snooze",
    body: [
      el("p", {}, "No notifications about this incident until then. It stays in the list."),
      el(
        "div",
        { class: "choices" },
        ...choices.map(({ words }, at) =>
          el("label", { class: "check" }, radios[at], words, at === choices.length - 1 && until),
        ),
      ),
    ],
    accept: "Snooze",
    answer: () => {
      const chosen = radios.findIndex((radio) => radio.checked);
      if (chosen === choices.length - 1 && !(fromInput(until.value) > Date.now()))
        return invalid(until, "Choose a time in the future.");
      return choices[chosen].body();
    },
  });
  return body && send(incident, "POST", "snooze", body, "Snoozed");
}

/** @param {HTMLInputElement} input @param {string} message @returns {null} */
function invalid(input, message) {
  input.setCustomValidity(message);
  input.reportValidity();
  input.addEventListener("input", () => input.setCustomValidity(""), { once: true });
  return null;
}

/** @param {Incident} incident */
export async function label(incident) {
  const radios = LABELS.map(([value]) =>
    el("input", { type: "radio", name: "label", value, checked: value === (incident.label ?? "") }),
  );
  const exclude = el("input", { type: "checkbox", name: "exclude", checked: incident.excluded });
  const note = el("textarea", { name: "note", rows: 3, maxlength: 2000 }, incident.note ?? "");
  const body = await ask({
    title: "Label",
    body: [
      el(
        "div",
        { class: "choices" },
        ...LABELS.map(([, words], at) => el("label", { class: "check" }, radios[at], words)),
      ),
      incident.open &&
        incident.kind === "alarm" &&
        el(
          "p",
          { class: "muted" },
          "A false alarm ends this incident: the detector learns the signal's present behaviour as normal.",
        ),
      el("label", { class: "check" }, exclude, "Exclude its observations from calibration"),
      el(
        "p",
        { class: "muted" },
        "Later observations are not compared with these. Use this for faults, so that the next one is detected as well.",
      ),
      field("Note", note),
    ],
    accept: "Save",
    answer: () => ({
      label: radios.find((radio) => radio.checked)?.value || null,
      exclude: exclude.checked,
      note: note.value.trim() || null,
    }),
  });
  return body && send(incident, "POST", "label", body, "Saved");
}
