/** Numbers and times as people read them. */

import { clock, day } from "./zone.js";

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const NOTHING = "–";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** @param {number | null | undefined} value */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e12 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  return size >= 1e6 ? short.format(value) : plain.format(value);
}

/**
 * Values of all features, with the unit.
 * @param {(number | null)[]} values
 * @param {string | null | undefined} unit
 */
export function values(values, unit) {
  const shown = values.slice(0, 3).map(number).join(", ") + (values.length > 3 ? ", …" : "");
  return unit && shown !== NOTHING ? `${shown} ${unit}` : shown || NOTHING;
}

/** @param {number | null | undefined} p */
export function pValue(p) {
  if (p === null || p === undefined || !Number.isFinite(p)) return NOTHING;
  return p < 1e-3 && p > 0 ? p.toExponential(1) : String(Number(p.toPrecision(2)));
}

/**
 * A severity: it is a logarithm, of which no more than the first decimal says anything.
 * @param {number | null | undefined} value
 */
export function severity(value) {
  return value === null || value === undefined ? NOTHING : value.toFixed(1);
}

/** @param {number | null | undefined} count */
export function count(count) {
  return count === null || count === undefined ? NOTHING : whole.format(count);
}

/**
 * @param {number} many
 * @param {string} one what there is one of
 * @param {string} [more] what there are several of
 */
export function counted(many, one, more = `${one}s`) {
  return `${count(many)} ${many === 1 ? one : more}`;
}

/** @param {number | null | undefined} bytes */
export function bytes(bytes) {
  if (bytes === null || bytes === undefined) return NOTHING;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  while (bytes >= 1024 && power < units.length - 1) {
    bytes /= 1024;
    power += 1;
  }
  return `${Number(bytes.toPrecision(3))} ${units[power]}`;
}

/** @param {number} milliseconds */
export function duration(milliseconds) {
  const size = Math.abs(milliseconds);
  if (size < SECOND) return `${Math.round(size)} ms`;
  if (size < MINUTE) return `${Number((size / SECOND).toPrecision(2))} s`;
  if (size < HOUR) return `${Math.floor(size / MINUTE)} min`;
  if (size < 2 * DAY) {
    const minutes = Math.floor((size % HOUR) / MINUTE);
    return `${Math.floor(size / HOUR)} h${minutes && size < 10 * HOUR ? ` ${minutes} min` : ""}`;
  }
  return `${Math.floor(size / DAY)} d`;
}

/**
 * Milliseconds since 1970 of an ISO 8601 time; NaN if there is none.
 * @param {string | null | undefined} time
 */
export function moment(time) {
  return time ? Date.parse(time) : NaN;
}

/**
 * Whether a text is a time as the monitor writes it.
 * @param {string} text
 */
export function isTime(text) {
  return /^\d{4}-\d\d-\d\dT/.test(text);
}

/**
 * A time in the page's zone; the day only where it is not today.
 * @param {string | number | null | undefined} time
 */
export function time(time) {
  const date = new Date(typeof time === "number" ? time : moment(time));
  if (Number.isNaN(date.getTime())) return NOTHING;
  return day(date) === day(new Date()) ? clock(date) : `${day(date)} ${clock(date)}`;
}

/**
 * A stretch of time in the page's zone.
 * @param {string} start
 * @param {string | null} end
 */
export function span(start, end) {
  if (!end || end === start) return time(start);
  const [from, to] = [new Date(moment(start)), new Date(moment(end))];
  return day(from) === day(to) ? `${time(start)} to ${clock(to)}` : `${time(start)} to ${day(to)} ${clock(to)}`;
}

/**
 * How long ago a time is.
 * @param {string | null | undefined} time
 */
export function ago(time) {
  const past = Date.now() - moment(time);
  if (Number.isNaN(past)) return "never";
  return past < SECOND ? "now" : `${duration(past < MINUTE ? SECOND * Math.floor(past / SECOND) : past)} ago`;
}
