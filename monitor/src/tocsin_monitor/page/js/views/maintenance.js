/** Maintenance windows. */

import { get, request } from "../api.js";
import { confirmed } from "../dialogs.js";
import { el, nameOf } from "../dom.js";
import { fleet } from "../fleet.js";
import { counted, duration, moment, span } from "../format.js";
import { askForMaintenance, askForRecurring, occurrenceList, recurrence } from "../maintenance_dialog.js";
import { attempt } from "../notices.js";
import { fits } from "../pattern.js";
import { allowed } from "../role.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {import("../types.js").Maintenance} Maintenance */

/** @type {import("./view.js").View} */
export function maintenance(main) {
  const box = el("div", {}, "Loading…");
  const add = async (/** @type {() => Promise<boolean>} */ asking) => {
    if (await asking()) load();
  };
  const buttons = allowed("operate") && [
    el("button", { type: "button", class: "primary", onclick: () => void add(() => askForMaintenance("")) }, "Add a window"),
    el("button", { type: "button", onclick: () => void add(askForRecurring) }, "Add a recurring one"),
  ];
  main.append(el("div", { class: "bar" }, el("h1", { tabindex: "-1" }, "Maintenance"), buttons), box);

  const load = () =>
    void fillWhenLoaded(box, async () => {
      const windows = /** @type {Maintenance[]} */ ((await get("/maintenance")).maintenance);
      windows.sort((a, b) => rank(a) - rank(b) || Math.abs(distance(a)) - Math.abs(distance(b)));
      return [
        windows.length
          ? el("ul", { class: "cards" }, ...windows.map((one) => card(one, load)))
          : el("p", { class: "empty" }, "No maintenance windows."),
      ];
    });
  load();

  return { title: "Maintenance", reload: load, close: () => {} };
}

/**
 * Milliseconds until it begins; negative since it ended, 0 while it lasts.
 * @param {Maintenance} window
 */
function distance(window) {
  const { start, end } = current(window);
  return Math.max(moment(start) - Date.now(), 0) + Math.min(moment(end) - Date.now(), 0);
}

/**
 * The window itself, or the occurrence of a recurring one that lasts or comes next; the last moment if none does.
 * @param {Maintenance} window
 */
function current({ start, end, occurrences }) {
  return occurrences[0] ?? { start, end: end ?? start };
}

/**
 * Those that last come first, then those to come, then those that are over.
 * @param {Maintenance} window
 */
function rank(window) {
  return [0, 1, -1].indexOf(Math.sign(distance(window)));
}

/**
 * @param {Maintenance} window
 * @param {() => void} reload
 */
function card(window, reload) {
  const shown = current(window);
  const [start, end, now] = [moment(shown.start), moment(shown.end), Date.now()];
  const when =
    now < start ? `starts in ${duration(start - now)}` : now < end ? `now, ${duration(end - now)} left` : "over";
  const meaning =
    now < end
      ? "Observations from now on are judged. Those already in the window"
      : "The window is over. Observations in it";
  const fitting = [...fleet.signals.keys()].filter((name) => fits(window.pattern, name)).length;
  const remove = async () => {
    if (
      !(await confirmed(
        "Remove the maintenance window",
        `${meaning} stay as they are: kept, but neither judged nor learned.`,
        "Remove",
      ))
    )
      return;
    if (await attempt(() => request("DELETE", `/maintenance/${window.id}`), "Removed")) reload();
  };
  return el(
    "li",
    { class: now >= end ? "card over" : now >= start ? "card active" : "card" },
    el(
      "div",
      { class: "what" },
      el("div", { class: "title" }, nameOf(window.pattern)),
      el(
        "div",
        {},
        `${window.schedule ? recurrence(window) : span(shown.start, shown.end)} · ${counted(fitting, "signal")} `,
        el("span", { class: "tag" }, when),
      ),
      window.schedule && occurrenceList(window.occurrences),
      el(
        "div",
        { class: "muted" },
        [window.reason, window.created_by && `by ${window.created_by}`].filter(Boolean).join(" · "),
      ),
    ),
    allowed("operate") && el("div", { class: "actions" }, el("button", { type: "button", onclick: remove }, "Remove")),
  );
}
