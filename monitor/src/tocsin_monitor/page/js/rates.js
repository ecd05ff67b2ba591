/** Alarm rates in words: as odds, as budgets and as the audit's finding. */

import { count, moment } from "./format.js";

/** @typedef {import("./types.js").Audit} Audit */

const DAY = 86_400;
/** Spans of time for budgets, by their seconds. */
const PERIODS = /** @type {[number, string][]} */ ([
  [3600, "an hour"],
  [DAY, "a day"],
  [7 * DAY, "a week"],
  [30 * DAY, "a month"],
  [365 * DAY, "a year"],
]);

const UNITS = /** @type {[number, string][]} */ ([
  [365 * DAY, "year"],
  [30 * DAY, "month"],
  [DAY, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
]);

/** @param {number} value */
const few = (value) => String(Number(value.toPrecision(value < 100 ? 2 : 3)));

/**
 * 0.01 as "1 in 100".
 * @param {number | null} rate null for a signal that is quarantined
 */
export function odds(rate) {
  if (rate === null) return "unknown";
  return rate > 0 && rate < 1 ? `1 in ${count(Math.round(1 / rate))}` : few(rate);
}

/**
 * False alarms or incidents to expect, as "about 3 a week".
 * @param {number} perSecond
 */
export function budget(perSecond) {
  if (!(perSecond > 0)) return "none";
  const [seconds, period] = PERIODS.find(([seconds]) => perSecond * seconds >= 0.95) ?? PERIODS[PERIODS.length - 1];
  return `about ${few(perSecond * seconds)} ${period}`;
}

/**
 * A return period, as "12 days"; empty if it is not known.
 * @param {number} seconds
 */
export function often(seconds) {
  if (!(seconds > 0 && seconds < Infinity)) return "";
  const [length, unit] = UNITS.find(([length]) => seconds >= 2 * length) ?? UNITS[UNITS.length - 1];
  const many = Math.max(1, Math.round(seconds / length));
  return `${count(many)} ${unit}${many === 1 ? "" : "s"}`;
}

/**
 * The audit in one sentence.
 * @param {Audit} audit
 */
export function auditInWords({ promised, rate, observations, low, high, finding, ratio, since, unit }) {
  if (!observations || rate === null || rate === undefined || low === null || high === null) {
    return `promised ${odds(promised)}; no observations since warm-up yet`;
  }
  const base = 1 / promised;
  const seen = `observed ${few(rate * base)} in ${count(Math.round(base))}`;
  const from = since === null || since === undefined ? "warm-up" : `observation ${count(since)}`;
  const times = ratio ? `, ${few(ratio)} times the promised ${unit}` : "";
  const bounds = `between ${few(low * base)} and ${few(high * base)}`;
  return `${finding}${times}: promised ${odds(promised)}, ${seen} since ${from} (${bounds})`;
}

/**
 * Seconds between a signal's observations; NaN if that is not known.
 * @param {import("./types.js").Signal | undefined} signal
 */
export function paceOf(signal) {
  return signal?.pace ?? spacing((signal?.recent ?? []).map(([time]) => moment(time)));
}

/**
 * Median seconds between times; NaN if there are too few.
 * @param {number[]} times milliseconds since 1970, ascending
 */
export function spacing(times) {
  const gaps = [];
  for (let i = 1; i < times.length; i++) gaps.push((times[i] - times[i - 1]) / 1000);
  gaps.sort((a, b) => a - b);
  return gaps.length ? gaps[gaps.length >> 1] : NaN;
}
