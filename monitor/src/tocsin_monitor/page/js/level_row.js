/** A level of signals in the tree: its worst state, how many are in it, and how many need somebody. */

import { el, nameOf } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { STATES, STATE_WORDS } from "./order.js";
import { worst } from "./tree.js";

/** @typedef {import("./tree.js").Level} Level */

/** @type {Record<string, string>} States of some signals of many, where the word for one would not do. */
const LEVEL_WORDS = { incident: "with an incident", maintenance: "in maintenance" };

/**
 * @param {Level} level
 * @param {HTMLInputElement} check
 * @param {{toggle: (level: string) => void, enter: (level: string) => string}} actions opens or closes it, and the address of it alone
 */
export function makeLevelRow(level, check, { toggle, enter }) {
  const button = el(
    "button",
    { type: "button", class: "toggle", onclick: () => toggle(level.path) },
    el("span", { class: "arrow", "aria-hidden": "true" }),
    el("span", { class: "state" }),
    nameOf(level.label),
  );
  return el(
    "div",
    { class: "row level" },
    check,
    button,
    el("span", { class: "counts" }),
    el("a", { href: enter(level.path), "aria-label": `only this: ${level.path}` }, "only this"),
  );
}

/**
 * @param {HTMLElement} row
 * @param {Level} level
 * @param {boolean} open
 */
export function updateLevelRow(row, level, open) {
  const [, button, counts] = /** @type {HTMLElement[]} */ ([...row.children]);
  const state = worst(level);
  if (row.dataset.state !== state) {
    row.dataset.state = state;
    button.children[1].replaceChildren(icon(state), el("span", { class: "hidden" }, STATE_WORDS[state]));
  }
  button.setAttribute("aria-expanded", String(open));
  row.style.setProperty("--depth", String(level.depth));
  const words = inWords(level);
  if (counts.textContent !== words) counts.textContent = words;
}

/**
 * @param {Level} level
 */
export function inWords({ counts, total }) {
  const parts = STATES.filter((state) => state !== "fine" && counts[state]).map(
    (state) => `${count(counts[state])} ${LEVEL_WORDS[state] ?? STATE_WORDS[state]}`,
  );
  return [...parts, `${count(total)} in all`].join(", ");
}
