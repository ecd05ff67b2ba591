/** Maintenance windows. */

import { get, request } from "../api.js";
import { confirmed } from "../dialogs.js";
import { el, nameOf } from "../dom.js";
import { fleet } from "../fleet.js";
import { counted, duration, moment, span } from "../format.js";
import { askForMaintenance } from "../maintenance_dialog.js";
import { attempt } from "../notices.js";
import { fits } from "../pattern.js";
import { allowed } from "../role.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {import("../types.js").Maintenance} Maintenance */

/** @type {import("./view.js").View} */
export function maintenance(main) {
  const box = el("div", {}, "Loading…");
  const add = async () => {
    if (await askForMaintenance("")) load();
  };
  const button = allowed("operate") && el("button", { type: "button", class: "primary", onclick: add }, "Add a window");
  main.append(el("div", { class: "bar" }, el("h1", { tabindex: "-1" }, "Maintenance"), button), box);

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
function distance({ start, end }) {
  return Math.max(moment(start) - Date.now(), 0) + Math.min(moment(end) - Date.now(), 0);
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
  const [start, end, now] = [moment(window.start), moment(window.end), Date.now()];
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
        `${span(window.start, window.end)} · ${counted(fitting, "signal")} `,
        el("span", { class: "tag" }, when),
      ),
      el(
        "div",
        { class: "muted" },
        [window.reason, window.created_by && `by ${window.created_by}`].filter(Boolean).join(" · "),
      ),
    ),
    allowed("operate") && el("div", { class: "actions" }, el("button", { type: "button", onclick: remove }, "Remove")),
  );
}
