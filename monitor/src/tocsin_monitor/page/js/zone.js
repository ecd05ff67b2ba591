/** The zone of all times on the page: the browser's, or UTC. It is remembered, and part of the address. */

const KEY = "tocsin-zone";
let utc = localStorage.getItem(KEY) === "utc";

export function isUtc() {
  return utc;
}

/** @param {boolean} wanted */
export function useUtc(wanted) {
  utc = wanted;
  if (wanted) localStorage.setItem(KEY, "utc");
  else localStorage.removeItem(KEY);
}

/** @param {number} part */
const two = (part) => String(part).padStart(2, "0");

/**
 * The day of a moment, as 2026-11-16.
 * @param {Date} date
 */
export function day(date) {
  return utc
    ? date.toISOString().slice(0, 10)
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/**
 * The time of day of a moment, as 09:05:00.
 * @param {Date} date
 */
export function clock(date) {
  return utc
    ? date.toISOString().slice(11, 19)
    : `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** The zone in words. */
export function zoneName() {
  if (utc) return "UTC";
  const ahead = -new Date().getTimezoneOffset();
  const hours = `${Math.floor(Math.abs(ahead) / 60)}${ahead % 60 ? `:${two(Math.abs(ahead) % 60)}` : ""}`;
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return `${name}${ahead ? ` (UTC${ahead < 0 ? "−" : "+"}${hours})` : name === "UTC" ? "" : " (UTC)"}`;
}

/**
 * What an <input type="datetime-local" step="1"> takes.
 * @param {number} time milliseconds since 1970
 */
export function toInput(time) {
  const date = new Date(time);
  return `${day(date)}T${clock(date)}`;
}

/**
 * The time that such an input holds, in milliseconds since 1970; NaN if none.
 * @param {string} text
 */
export function fromInput(text) {
  return Date.parse(utc && text ? `${text}Z` : text);
}
