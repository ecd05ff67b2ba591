/** Keys. Views say what theirs do; letters can be turned off for those who dictate or use other tools. */

import { byId, el } from "./dom.js";
import { tell } from "./dialogs.js";
import { toggleTheme } from "./theme.js";

const OFF = "tocsin-keys-off";

/** @typedef {Record<string, () => void>} Keys */

/** @type {Keys} Those of the view that is shown. */
let viewKeys = {};

/** @type {Keys} */
const everywhere = {
  1: () => (location.hash = "#/"),
  2: () => (location.hash = "#/incidents"),
  3: () => (location.hash = "#/maintenance"),
  4: () => (location.hash = "#/status"),
  t: toggleTheme,
  "?": help,
};

const MEANINGS = [
  ["/", "search"],
  ["j, k, ↓, ↑", "next and previous row"],
  ["Enter", "open the row"],
  ["→, ←", "open and close a level of the tree"],
  ["a, s, l", "acknowledge, snooze, label the incident"],
  ["z", "zoom out in the charts"],
  ["1 to 4", "signals, incidents, maintenance, status"],
  ["t", "light or dark"],
  ["Esc", "close the search or a dialog"],
  ["?", "this list"],
];

/** @param {Keys} keys */
export function setViewKeys(keys) {
  viewKeys = keys;
}

function help() {
  const off = el("input", { type: "checkbox" });
  off.checked = localStorage.getItem(OFF) !== null;
  off.addEventListener("change", () => (off.checked ? localStorage.setItem(OFF, "1") : localStorage.removeItem(OFF)));
  const list = MEANINGS.map(([key, meaning]) =>
    el("div", { class: "fact" }, el("dt", {}, el("kbd", {}, key)), el("dd", {}, meaning)),
  );
  void tell("Keyboard shortcuts", [
    el("dl", { class: "facts shortcuts" }, ...list),
    el("label", { class: "check" }, off, "Turn these shortcuts off"),
  ]);
}

/** @param {EventTarget | null} target */
function writesText(target) {
  return (
    target instanceof HTMLElement && target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select")
  );
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (writesText(event.target) || (localStorage.getItem(OFF) && event.key.length === 1 && event.key !== "?")) return;
  const action = viewKeys[event.key] ?? everywhere[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

export function startKeys() {
  document.addEventListener("keydown", pressed);
  byId("keys").addEventListener("click", help);
}

/**
 * Keys that move the focus along rows.
 * @param {(step: number) => void} move
 * @returns {Keys}
 */
export function moving(move) {
  return { j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) };
}

/**
 * Move the focus along rows that are all there, to the first link of each.
 * @param {Iterable<Element>} rows
 * @param {number} step
 */
export function moveFocus(rows, step) {
  const all = [...rows];
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + step))];
  next?.querySelector("a")?.focus();
}
