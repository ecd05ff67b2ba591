/** A display on a wall: large tiles by level, the worst first, readable from across the room. Nothing can be pressed. */

import { el, nameOf } from "../dom.js";
import { fleet } from "../fleet.js";
import { count } from "../format.js";
import { icon } from "../icons.js";
import { inWords } from "../level_row.js";
import { STATES, STATE_WORDS, bySignal, ordered } from "../order.js";
import { isIn, treeOf, worst } from "../tree.js";

/** @typedef {import("../tree.js").Level} Level */

/** Milliseconds between two drawings: nobody reads faster from there. */
const DRAW_EVERY = 1000;
/** Signals in trouble that a tile names. */
const NAMED = 3;

/** @type {import("./view.js").View} */
export function wall(main, route) {
  const level = route.query.get("level") ?? "";
  const tiles = el("div", { class: "tiles", role: "list", "aria-label": "Levels" });
  const heading = el("h1", { class: "hidden", tabindex: "-1" }, level || "All signals");
  main.append(el("div", { class: "wall" }, heading, tiles));
  document.body.classList.add("on-wall");

  function draw() {
    const open = bySignal(fleet.open.values());
    const shown = ordered(fleet.signals.values(), open).filter(({ name }) => isIn(name, level));
    const root = treeOf(shown, open, level);
    const levels = [...root.levels.values()];
    // Signals in no level have a tile together.
    if (root.signals.length) levels.push(treeOf(root.signals, open, level));
    levels.sort((a, b) => STATES.indexOf(worst(a)) - STATES.indexOf(worst(b)) || a.label.localeCompare(b.label));
    tiles.replaceChildren(...levels.map((one) => tile(one, level)));
    if (!levels.length) tiles.replaceChildren(el("p", {}, fleet.loaded ? "No signals." : "Loading…"));
  }

  const timer = setInterval(draw, DRAW_EVERY);
  draw();
  return {
    title: level || "Wall",
    close: () => {
      clearInterval(timer);
      document.body.classList.remove("on-wall");
    },
  };
}

/**
 * @param {Level} level
 * @param {string} within
 */
function tile(level, within) {
  const state = worst(level);
  const trouble = level.counts.aside + level.counts.incident + level.counts.silent;
  const named = trouble ? inTrouble(level).slice(0, NAMED) : [];
  return el(
    "div",
    { class: "tile", role: "listitem", "data-state": state },
    el("div", { class: "state" }, icon(state), STATE_WORDS[state]),
    el("div", { class: "label" }, level.path === within ? "other signals" : nameOf(level.label)),
    trouble ? el("div", { class: "number" }, count(trouble)) : null,
    el("div", { class: "counts" }, inWords(level)),
    el("ul", {}, ...named.map((name) => el("li", {}, nameOf(name.slice(level.path ? level.path.length + 1 : 0))))),
  );
}

/**
 * The names of the signals that need somebody, the worst first.
 * @param {Level} level
 * @returns {string[]}
 */
function inTrouble(level) {
  const open = bySignal(fleet.open.values());
  /** @type {import("../types.js").Signal[]} */
  const all = [];
  const collect = (/** @type {Level} */ one) => {
    all.push(...one.signals.filter((signal) => signal.aside || signal.silent || open.has(signal.name)));
    one.levels.forEach(collect);
  };
  collect(level);
  return ordered(all, open).map(({ name }) => name);
}
