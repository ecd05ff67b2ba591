/** The dialogs for snoozing and labelling, of one incident or of many. */

import { ask, field } from "./dialogs.js";
import { el } from "./dom.js";
import { fromInput, toInput } from "./zone.js";

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
  ["not interesting", "Not interesting: unusual, but it does not matter"],
  ["", "No label"],
]);

/**
 * Until when; null if cancelled.
 * @param {string} title
 * @param {string} text
 */
export function askForSnooze(title, text) {
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
  return ask({
    title,
    body: [
      el("p", {}, text),
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
      return /** @type {object} */ (choices[chosen].body());
    },
  });
}

/** @param {HTMLInputElement} input @param {string} message @returns {null} */
function invalid(input, message) {
  input.setCustomValidity(message);
  input.reportValidity();
  input.addEventListener("input", () => input.setCustomValidity(""), { once: true });
  return null;
}

/**
 * What it was; null if cancelled.
 * @param {object} known
 * @param {string} known.title
 * @param {string | null} known.label
 * @param {boolean} known.excluded
 * @param {string | null} known.note
 * @param {boolean} known.goesOn whether a false alarm ends it
 * @param {boolean} [known.holds] whether its label holds for the next ones like it
 * @param {string | null} [known.alike] null if there are none like it
 */
export function askForLabel({ title, label, excluded, note: before, goesOn, holds, alike }) {
  const radios = LABELS.map(([value]) =>
    el("input", { type: "radio", name: "label", value, checked: value === (label ?? "") }),
  );
  const hold = el("input", { type: "checkbox", name: "hold", checked: holds || !label });
  const exclude = el("input", { type: "checkbox", name: "exclude", checked: excluded });
  const note = el("textarea", { name: "note", rows: 3, maxlength: 2000 }, before ?? "");
  return ask({
    title,
    body: [
      el(
        "div",
        { class: "choices" },
        ...LABELS.map(([, words], at) => el("label", { class: "check" }, radios[at], words)),
      ),
      ...(alike === null ? [] : [
        el("label", { class: "check" }, hold, "Also for the next ones like it, until the label is removed"),
        el(
          "p",
          { class: "muted" },
          "“Expected” and “not interesting”: no notifications about these, unless one is twice as severe. They stay listed.",
        ),
      ]),
      goesOn &&
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
      hold: hold.checked,
      note: note.value.trim() || null,
    }),
  });
}
