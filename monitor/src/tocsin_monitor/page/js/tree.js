/** Signals by the levels of their names: plant/line-3/pump is in line-3, which is in plant. */

import { STATES, inNames, stateOf } from "./order.js";

/** @typedef {import("./types.js").Signal} Signal */
/** @typedef {import("./order.js").State} State */

/**
 * @typedef {object} Level
 * @property {string} path such as plant/line-3
 * @property {string} label its last part
 * @property {number} depth 0 for the uppermost
 * @property {Map<string, Level>} levels those below, by their labels
 * @property {Signal[]} signals those that are in it and in no level below
 * @property {number} total the signals in it and below
 * @property {Record<State, number>} counts the same, by state
 */

/** @typedef {{level: Level, open: boolean} | {signal: Signal, depth: number, label: string}} TreeRow */

/**
 * The levels of a name, from the uppermost. A slash in the value of a label, as in free{mount="/var/log"}, begins none.
 * @param {string} name
 */
export const levelsOf = (name) => name.split(/(?<!\{[^}]*)\//);

/**
 * @param {string} path
 * @param {number} depth
 * @returns {Level}
 */
function level(path, depth) {
  const counts = { quarantined: 0, incident: 0, silent: 0, maintenance: 0, learning: 0, fine: 0 };
  const label = levelsOf(path).at(-1) || "/";
  return { path, label, depth, levels: new Map(), signals: [], total: 0, counts };
}

/**
 * The worst state that a signal in it has.
 * @param {Level} level
 */
export function worst({ counts }) {
  return STATES.find((state) => counts[state] > 0) ?? "fine";
}

/**
 * @param {Signal[]} signals in the order in which they are shown
 * @param {Map<string, import("./types.js").Incident>} incidents the open ones, by signal
 * @param {string} below only levels in this one; "" for all
 * @returns {Level}
 */
export function treeOf(signals, incidents, below) {
  const root = level(below, -1);
  const skipped = below ? below.length + 1 : 0;
  for (const signal of signals) {
    const state = stateOf(signal, incidents);
    const parts = levelsOf(signal.name.slice(skipped));
    let at = root;
    root.total += 1;
    root.counts[state] += 1;
    for (const part of parts.slice(0, -1)) {
      let next = at.levels.get(part);
      if (!next) at.levels.set(part, (next = level(at.path ? `${at.path}/${part}` : part, at.depth + 1)));
      next.total += 1;
      next.counts[state] += 1;
      at = next;
    }
    at.signals.push(signal);
  }
  return root;
}

/**
 * The rows of what is open, from top to bottom: levels, the worst first or by name, then the signals.
 * @param {Level} root
 * @param {(level: Level) => boolean} isOpen
 * @param {boolean} [named] whether levels come by name alone
 * @returns {TreeRow[]}
 */
export function treeRows(root, isOpen, named = false) {
  const levels = [...root.levels.values()].map((one) => ({ one, rank: named ? 0 : STATES.indexOf(worst(one)) }));
  levels.sort((a, b) => a.rank - b.rank || inNames(a.one.label, b.one.label));
  /** @type {TreeRow[]} */
  const rows = [];
  for (const { one } of levels) {
    const open = isOpen(one);
    // A level for a single signal would only be in the way.
    if (one.total > 1) rows.push({ level: one, open });
    if (open || one.total === 1) rows.push(...treeRows(one, isOpen, named).map((row) => seenFrom(row, root, one)));
  }
  for (const signal of root.signals) rows.push({ signal, depth: root.depth + 1, label: below(signal, root) });
  return rows;
}

/**
 * A row of a level that may be left out itself, as its parent shows it.
 * @param {TreeRow} row
 * @param {Level} parent
 * @param {Level} level
 * @returns {TreeRow}
 */
function seenFrom(row, parent, level) {
  if ("level" in row || level.total > 1) return row;
  return { signal: row.signal, depth: parent.depth + 1, label: below(row.signal, parent) };
}

/**
 * A signal's name without the level that it is in.
 * @param {Signal} signal
 * @param {Level} level
 */
function below({ name }, { path }) {
  return path ? name.slice(path.length + 1) : name;
}

/**
 * Whether a signal is in a level, or below.
 * @param {string} name
 * @param {string} path "" for all
 */
export function isIn(name, path) {
  return !path || name.startsWith(`${path}/`);
}
