/**
 * The time range of charts: the last hours or days up to a signal's newest observation, all there is, or from one time
 * to another. The clock does not matter: after an import of old data, or a silence, nothing would be in sight.
 */

import { paceOf } from "./rates.js";
import { moment } from "./format.js";

/**
 * Either `last`, one of the names below, or `from` and `to` in milliseconds since 1970.
 * @typedef {{last: string} | {from: number, to: number}} Range
 */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** @type {Record<string, number>} name in the address and on the page, and length in milliseconds */
export const LENGTHS = { "1h": HOUR, "6h": 6 * HOUR, "1d": DAY, "7d": 7 * DAY, "30d": 30 * DAY, all: Infinity };

/** So many observations should be in sight at first. */
const ENOUGH = 200;

/**
 * The range in an address; null if it has none, or none that makes sense.
 * @param {URLSearchParams} query
 * @returns {Range | null}
 */
export function rangeOf(query) {
  const last = query.get("range");
  if (last !== null && Object.hasOwn(LENGTHS, last)) return { last };
  const [from, to] = [moment(query.get("from")), moment(query.get("to"))];
  return from < to ? { from, to } : null;
}

/**
 * @param {Range} range
 * @returns {Record<string, string>} what the address says of it
 */
export function rangeQuery(range) {
  if ("last" in range) return { range: range.last };
  return { from: new Date(range.from).toISOString(), to: new Date(range.to).toISOString() };
}

/**
 * Where it begins and ends; null where it is open.
 * @param {Range} range
 * @param {number} newest when the newest observation was, in milliseconds since 1970; NaN if that is not known
 * @returns {{from: number | null, to: number | null}} in milliseconds since 1970
 */
export function limits(range, newest) {
  if (!("last" in range)) return range;
  const from = newest - LENGTHS[range.last];
  return { from: Number.isFinite(from) ? from : null, to: null };
}

/**
 * The shortest one up to the newest observation that has enough of them in it.
 * @param {import("./types.js").Signal | undefined} signal
 * @returns {Range}
 */
export function fittingRange(signal) {
  const many = Math.min(ENOUGH, signal?.observations ?? ENOUGH);
  const needed = many * 1000 * paceOf(signal);
  const fitting = Object.entries(LENGTHS).find(([, length]) => needed <= length);
  return { last: fitting ? fitting[0] : "all" };
}
