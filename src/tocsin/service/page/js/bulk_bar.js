/** What can be done with many signals at once: with those selected, or with all that are shown. */

import { request } from "./api.js";
import { ask, confirmed, field, tell } from "./dialogs.js";
import { el, nameOf } from "./dom.js";
import { fleet } from "./fleet.js";
import { counted } from "./format.js";
import { askForLabel, askForSnooze } from "./incident_forms.js";
import { askForWindow } from "./maintenance_dialog.js";
import { notice } from "./notices.js";
import { allowed } from "./role.js";

/** As many as the monitor takes in one request. */
const MOST = 1000;
const MOST_LEARNING = 200;

/** @typedef {{signal: string, incident: number | null, error: string | null}} Item */

/**
 * @param {import("./selection.js").Selection} selection
 * @param {(selecting: boolean) => void} changed
 */
export function bulkBar(selection, changed) {
  const words = el("span", { role: "status" });
  const button = el("button", { type: "button", "aria-pressed": "false", onclick: toggle }, "Select");
  const clear = el("button", { type: "button", onclick: () => selection.clear() }, "Select none");
  /** @type {(text: string, action: (names: string[]) => Promise<void>, shown?: boolean) => any} */
  const offer = (text, action, shown = true) =>
    shown && el("button", { type: "button", onclick: () => void start(action) }, `${text}…`);
  const element = el(
    "div",
    { class: "bar bulk", role: "group", "aria-label": "Actions on many signals", hidden: true },
    words,
    clear,
    offer("Acknowledge", acknowledge),
    offer("Snooze", snooze),
    offer("Label", label),
    offer("Maintenance", maintenance),
    offer("Settings", settings, allowed("write")),
    offer("Reset", reset, allowed("write")),
  );

  function toggle() {
    const selecting = Boolean(element.hidden);
    element.hidden = !selecting;
    button.setAttribute("aria-pressed", String(selecting));
    changed(selecting);
    if (!selecting) selection.clear();
  }

  /** @param {(names: string[]) => Promise<void>} action */
  async function start(action) {
    const names = selection.chosen;
    if (!names.length) return notice("No signals are shown", "failed");
    if (names.length > MOST) return notice(`At most ${counted(MOST, "signal")} at once: narrow them down`, "failed");
    await action(names);
  }

  return {
    button: allowed("operate") ? button : null,
    element,
    draw() {
      const many = selection.size;
      words.textContent = many
        ? `${counted(many, "signal")} selected:`
        : `All ${counted(selection.chosen.length, "signal")} shown:`;
      clear.hidden = many === 0;
    },
  };
}

/**
 * How many open incidents these signals have.
 * @param {string[]} names
 */
function openIncidents(names) {
  const chosen = new Set(names);
  return [...fleet.open.values()].filter(({ signal }) => chosen.has(signal)).length;
}

/**
 * Send one request for all, and say what became of them.
 * @param {string} path
 * @param {object} body
 * @param {string} done what was done, in words
 */
async function send(path, body, done) {
  /** @type {{done: number, failed: number, items: Item[]}} */
  let reply;
  try {
    reply = await request("POST", `/bulk/${path}`, body);
  } catch (error) {
    return notice(error instanceof Error ? error.message : String(error), "failed");
  }
  notice(`${done}: ${reply.done} done${reply.failed ? `, ${reply.failed} failed` : ""}`, reply.failed ? "failed" : "done");
  await fleet.load();
  const failed = reply.items.filter(({ error }) => error);
  if (!failed.length) return;
  await tell(`${counted(failed.length, "item")} failed`, [
    el("ul", { class: "failures" }, ...failed.map(({ signal, error }) => el("li", {}, nameOf(signal), `: ${error}`))),
  ]);
}

/** @param {string[]} names */
async function acknowledge(names) {
  const what = `${counted(openIncidents(names), "open incident")} of ${counted(names.length, "signal")}`;
  const note = el("input", { name: "note", maxlength: 500 });
  const body = await ask({
    title: `Acknowledge ${what}`,
    body: [field("Note", note)],
    accept: "Acknowledge",
    answer: () => ({ note: note.value.trim() || null }),
  });
  if (body) await send("incidents", { signals: names, acknowledge: body }, "Acknowledge");
}

/** @param {string[]} names */
async function snooze(names) {
  const what = `${counted(openIncidents(names), "open incident")} of ${counted(names.length, "signal")}`;
  const body = await askForSnooze(`Snooze ${what}`, "No notifications about these incidents until then.");
  if (body) await send("incidents", { signals: names, snooze: body }, "Snooze");
}

/** @param {string[]} names */
async function label(names) {
  const what = `${counted(openIncidents(names), "open incident")} of ${counted(names.length, "signal")}`;
  const body = await askForLabel({ title: `Label ${what}`, label: null, excluded: false, note: null, goesOn: true });
  if (body) await send("incidents", { signals: names, label: body }, "Label");
}

/** @param {string[]} names */
async function maintenance(names) {
  const window = await askForWindow(`Maintenance of ${counted(names.length, "signal")}`);
  if (window) await send("maintenance", { signals: names, ...window }, "Maintenance");
}

/** @param {string[]} names */
async function settings(names) {
  if (names.length > MOST_LEARNING) return notice(`At most ${MOST_LEARNING} signals at once`, "failed");
  const text = el("textarea", { name: "settings", rows: 5, spellcheck: "false" }, '{"alarm_rate": 0.001}');
  const body = await ask({
    title: `Settings of ${counted(names.length, "signal")}`,
    body: [
      el("p", {}, "Each detector relearns from its stored observations. Settings that are not given come from the template."),
      field("Settings of the detector, as JSON", text),
    ],
    accept: `Change ${counted(names.length, "signal")}`,
    answer: () => {
      try {
        return JSON.parse(text.value);
      } catch {
        text.setCustomValidity("This is not JSON.");
        text.reportValidity();
        text.addEventListener("input", () => text.setCustomValidity(""), { once: true });
        return null;
      }
    },
  });
  if (body) await send("signals", { signals: names, settings: { detector: body } }, "Settings");
}

/** @param {string[]} names */
async function reset(names) {
  if (names.length > MOST_LEARNING) return notice(`At most ${MOST_LEARNING} signals at once`, "failed");
  const sure = await confirmed(
    `Reset ${counted(names.length, "signal")}`,
    "Their detectors forget all they have learned and warm up again. Observations, incidents and references are kept.",
    `Reset ${counted(names.length, "signal")}`,
  );
  if (sure) await send("signals", { signals: names, reset: true }, "Reset");
}
