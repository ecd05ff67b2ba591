/**
 * A display on a wall: large tiles by level, the worst first, readable from across the room. Nothing can be pressed or
 * scrolled there: as many tiles are shown as fit, and a line at the bottom says what is not.
 */

import { el, nameOf } from "../dom.js";
import { fleet } from "../fleet.js";
import { count, counted } from "../format.js";
import { icon } from "../icons.js";
import { inWords } from "../level_row.js";
import { STATES, STATE_WORDS, bySignal, ordered, stateOf } from "../order.js";
import { isIn, treeOf, worst } from "../tree.js";
import { tilesThatFit } from "../wall_grid.js";
import { clock } from "../zone.js";

/** @typedef {import("../tree.js").Level} Level */
/** @typedef {import("../types.js").Incident} Incident */

/** Milliseconds between two drawings: nobody reads faster from there. */
const DRAW_EVERY = 1000;
/** Signals in trouble that a tile names at most; the style leaves out those for which it has no room. */
const NAMED = 12;

/** @type {import("./view.js").View} */
export function wall(main, route) {
  const level = route.query.get("level") ?? "";
  const tiles = el("div", { class: "tiles", role: "list", "aria-label": "Levels" });
  const heading = el("h1", { class: "hidden", tabindex: "-1" }, level || "All signals");
  const totals = el("span", {});
  const hidden = el("strong", {});
  const now = el("span", {});
  main.append(el("div", { class: "wall" }, heading, tiles, el("div", { class: "wall-foot" }, totals, hidden, now)));
  document.body.classList.add("on-wall");

  function draw() {
    const open = bySignal(fleet.open.values());
    const shown = ordered(fleet.signals.values(), open).filter(({ name }) => isIn(name, level));
    const root = treeOf(shown, open, level);
    const levels = worstFirst(root, open, level);
    const grid = tilesThatFit(levels.length, tiles.clientWidth, tiles.clientHeight);
    tiles.style.setProperty("--columns", String(grid.columns));
    tiles.style.setProperty("--rows", String(grid.rows));
    const fitting = levels.slice(0, grid.columns * grid.rows);
    tiles.replaceChildren(...fitting.map((one) => tile(one, level, open)));
    if (!levels.length) tiles.replaceChildren(el("p", {}, fleet.loaded ? "No signals." : "Loading…"));
    totals.textContent = levels.length ? `${level || "All signals"}: ${inWords(root)}` : "";
    hidden.textContent = notShown(levels.slice(fitting.length));
    now.textContent = clock(new Date());
  }

  const timer = setInterval(draw, DRAW_EVERY);
  addEventListener("resize", draw);
  draw();
  return {
    title: level || "Wall",
    close: () => {
      clearInterval(timer);
      removeEventListener("resize", draw);
      document.body.classList.remove("on-wall");
    },
  };
}

/**
 * The levels right below, by their worst state, then by how many signals are in trouble.
 * @param {Level} root
 * @param {Map<string, Incident>} open
 * @param {string} within
 */
function worstFirst(root, open, within) {
  const levels = [...root.levels.values()];
  // Signals in no level have a tile together.
  if (root.signals.length) levels.push(treeOf(root.signals, open, within));
  return levels.sort(
    (a, b) =>
      STATES.indexOf(worst(a)) - STATES.indexOf(worst(b)) ||
      b.counts[worst(b)] - a.counts[worst(a)] ||
      a.label.localeCompare(b.label, "en", { numeric: true }),
  );
}

/** @param {Level} level */
function inTrouble({ counts }) {
  return counts.quarantined + counts.incident + counts.silent;
}

/**
 * What there is no room for, in words.
 * @param {Level[]} levels
 */
function notShown(levels) {
  if (!levels.length) return "";
  const trouble = levels.reduce((sum, level) => sum + inTrouble(level), 0);
  const words = trouble ? `${counted(trouble, "signal")} in trouble` : "no trouble";
  return `${counted(levels.length, "more level")} not shown: ${words} there`;
}

/**
 * @param {Level} level
 * @param {string} within
 * @param {Map<string, Incident>} open
 */
function tile(level, within, open) {
  const state = worst(level);
  const trouble = inTrouble(level);
  const named = trouble ? namesInTrouble(level, open).slice(0, NAMED) : [];
  return el(
    "div",
    { class: "tile", role: "listitem", "data-state": state },
    el("div", { class: "state" }, icon(state), STATE_WORDS[state]),
    el(
      "div",
      { class: "headline" },
      el("span", { class: "label" }, level.path === within ? "other signals" : nameOf(level.label)),
      trouble ? el("span", { class: "number" }, count(trouble)) : null,
    ),
    el("div", { class: "counts" }, inWords(level)),
    el("ul", {}, ...named.map((name) => el("li", {}, nameOf(name.slice(level.path ? level.path.length + 1 : 0))))),
  );
}

/**
 * The names of the signals that need somebody, the worst first.
 * @param {Level} level
 * @param {Map<string, Incident>} open
 * @returns {string[]}
 */
function namesInTrouble(level, open) {
  /** @type {import("../types.js").Signal[]} */
  const all = [];
  const collect = (/** @type {Level} */ one) => {
    all.push(...one.signals.filter((signal) => signal.quarantined || signal.silent || open.has(signal.name)));
    one.levels.forEach(collect);
  };
  collect(level);
  const rank = (/** @type {import("../types.js").Signal} */ signal) => STATES.indexOf(stateOf(signal, open));
  return ordered(all, open)
    .sort((a, b) => rank(a) - rank(b))
    .map(({ name }) => name);
}
