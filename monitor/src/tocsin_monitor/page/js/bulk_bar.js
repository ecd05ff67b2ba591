/** What can be done with many signals at once: with those selected, or with all that are shown. */

import { request } from "./api.js";
import { send } from "./bulk.js";
import { askForSettings } from "./bulk_settings.js";
import { ask, confirmed, field } from "./dialogs.js";
import { el, nameOf } from "./dom.js";
import { fleet } from "./fleet.js";
import { ago, count, counted } from "./format.js";
import { askForLabel, askForSnooze } from "./incident_forms.js";
import { askForWindow } from "./maintenance_dialog.js";
import { notice } from "./notices.js";
import { allowed } from "./role.js";

/** As many as the monitor takes in one request. */
const MOST = 1000;
const MOST_LEARNING = 200;

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
    offer("Remove", remove, allowed("admin")),
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
 * The open incidents of these signals, in words; null, and a notice, if there are none.
 * @param {string[]} names
 */
function openIncidents(names) {
  const chosen = new Set(names);
  const many = [...fleet.open.values()].filter(({ signal }) => chosen.has(signal)).length;
  if (many) return `${counted(many, "open incident")} of ${counted(names.length, "signal")}`;
  notice("None of these signals has an open incident", "failed");
  return null;
}

/** @param {string[]} names */
async function acknowledge(names) {
  const what = openIncidents(names);
  if (!what) return;
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
  const what = openIncidents(names);
  if (!what) return;
  const body = await askForSnooze(`Snooze ${what}`, "No notifications about these incidents until then.");
  if (body) await send("incidents", { signals: names, snooze: body }, "Snooze");
}

/** @param {string[]} names */
async function label(names) {
  const what = openIncidents(names);
  if (!what) return;
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
  await askForSettings(names);
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

/**
 * Show what would be lost, and remove it if that is confirmed.
 * @param {string[]} names
 */
async function remove(names) {
  /** @type {{signal: string, observations: number, last_time: string | null}[]} */
  let found;
  try {
    found = (await request("POST", "/bulk/removal/preview", { signals: names })).signals;
  } catch (error) {
    return notice(error instanceof Error ? error.message : String(error), "failed");
  }
  const many = counted(found.length, "signal");
  const sure = await ask({
    title: `Remove ${many}`,
    body: [
      el("p", {}, "Observations, incidents and references are removed too. This cannot be undone."),
      el(
        "ul",
        { class: "failures" },
        ...found.map(({ signal, observations, last_time: last }) =>
          el("li", {}, nameOf(signal), `: ${count(observations)} learned, newest ${last ? ago(last) : "none"}`),
        ),
      ),
    ],
    accept: `Remove ${many}`,
    danger: true,
    answer: () => true,
  });
  if (sure) await send("removal", { signals: names, count: found.length }, "Remove");
}
