/** A signal's observations as columns, the way charts want them, growing at the end. */

import { moment } from "./format.js";
import { perFeature } from "./fleet.js";

/** @typedef {import("./types.js").History} History */
/** @typedef {import("./types.js").Verdict} Verdict */
/** @typedef {(number | null)[]} Column */

const OF_FEATURES = /** @type {const} */ (["value", "forecast", "low", "high"]);

export class Columns {
  /**
   * @param {History} history
   * @param {number} features
   * @param {number} limit the most observations kept
   */
  constructor(history, features, limit) {
    this.limit = limit;
    /** Seconds since 1970. */
    this.times = history.times.map((time) => moment(time) / 1000);
    /** @type {Column[]} One for each feature, as are the next three. */
    this.value = [];
    /** @type {Column[]} */
    this.forecast = [];
    /** @type {Column[]} */
    this.low = [];
    /** @type {Column[]} */
    this.high = [];
    for (let feature = 0; feature < features; feature++) {
      for (const name of OF_FEATURES) this[name].push(history[name]?.[feature] ?? this.times.map(() => null));
    }
    /** @type {Column} */
    this.p = history.p;
    this.alarm = history.alarm;
    this.status = history.status;
  }

  /**
   * Put a new verdict at the end. One that is older than the newest has no place in the charts: false.
   * @param {Verdict} verdict
   */
  add(verdict) {
    const time = moment(verdict.time) / 1000;
    if (!(time > (this.times.at(-1) ?? -Infinity))) return false;
    this.times.push(time);
    this.p.push(verdict.p ?? null);
    this.alarm.push(verdict.alarm ?? false);
    this.status.push(verdict.status);
    for (const name of OF_FEATURES) {
      const values = perFeature(verdict[name]);
      this[name].forEach((column, feature) => column.push(values[feature] ?? null));
    }
    if (this.times.length > this.limit) this.#drop(1);
    return true;
  }

  /**
   * Leave out what is older than a time, in seconds.
   * @param {number} time
   */
  dropBefore(time) {
    const first = this.times.findIndex((one) => one >= time);
    this.#drop(first < 0 ? this.times.length : first);
  }

  /** @param {number} many of the oldest */
  #drop(many) {
    if (many) for (const column of this.#all()) column.splice(0, many);
  }

  /**
   * Put observations at the end that came in between; those that are there already are left out.
   * @param {History} history
   */
  addHistory(history) {
    const { times, p, alarm, status } = history;
    const at = (/** @type {Column[]} */ columns, /** @type {number} */ row) => columns.map((column) => column[row]);
    return times.filter((time, row) =>
      this.add({
        signal: "",
        time,
        status: status[row],
        p: p[row],
        alarm: alarm[row],
        value: at(history.value, row),
        forecast: at(history.forecast, row),
        low: at(history.low, row),
        high: at(history.high, row),
      }),
    ).length;
  }

  /** @returns {any[][]} */
  #all() {
    return [this.times, this.p, this.alarm, this.status, ...OF_FEATURES.flatMap((name) => this[name])];
  }

  /**
   * Stretches of observations that came in a maintenance window.
   * @returns {import("./charts/marks.js").Span[]}
   */
  maintenance() {
    /** @type {import("./charts/marks.js").Span[]} */
    const found = [];
    this.status.forEach((status, at) => {
      if (status !== "maintenance") return;
      const time = this.times[at];
      if (at > 0 && this.status[at - 1] === "maintenance") found[found.length - 1].to = time;
      else found.push({ from: time, to: time, kind: "maintenance" });
    });
    return found;
  }
}
