/** Incidents in words. */

import { counted, duration, moment, number, span, time } from "./format.js";
import { often, spacing } from "./rates.js";

/** @typedef {import("./types.js").Incident} Incident */

/** Views of single observations; all others see stretches. */
const OF_MOMENTS = ["error", "horizons", "score"];

/**
 * What happened, in words.
 * @param {Incident} incident
 */
export function story(incident) {
  if (incident.kind === "silence") {
    const lasted = (incident.closed ? moment(incident.closed) : Date.now()) - moment(incident.start);
    return incident.open ? `no observation for ${duration(lasted)}` : `was silent for ${duration(lasted)}`;
  }
  const alarms = `${counted(incident.alarms, "alarm")} in ${counted(incident.duration, "observation")}`;
  const seen = whatWasSeen(incident);
  return seen ? `${seen}; ${alarms}` : alarms;
}

/**
 * What was strange at the peak, in words; incidents from before there were explanations only know a side.
 * @param {Incident} incident
 */
export function whatWasSeen({ explanation, direction, deviation }) {
  if (explanation) return explanation;
  const by = deviation === null ? "" : ` by ${number(Math.abs(deviation))}`;
  return direction ? `${direction} the forecast${by}` : "";
}

/**
 * How rare so much evidence is, in words.
 * @param {Incident} incident
 * @param {import("./types.js").Signal | undefined} signal
 */
export function rarity({ return_period: observations }, signal) {
  if (!observations) return null;
  const seconds = observations * spacing((signal?.recent ?? []).map(([time]) => moment(time)));
  return `comes about once in ${often(seconds) || counted(Math.round(observations), "observation")}`;
}

/**
 * When it was, in words.
 * @param {Incident} incident
 */
export function when({ kind, start, end, closed }) {
  if (kind === "silence") return closed ? span(start, closed) : `since ${time(start)}`;
  return span(start, end);
}

/** @param {Incident} incident */
export function isSnoozed(incident) {
  return incident.snoozed_until !== null && moment(incident.snoozed_until) > Date.now();
}

/**
 * Where an incident is in charts.
 * @param {Incident} incident
 * @returns {import("./charts/marks.js").Span}
 */
export function spanOf({ kind, start, end, closed, open, view }) {
  const over = kind === "silence" ? (open ? Date.now() : moment(closed)) : moment(end);
  const [from, to] = [moment(start) / 1000, over / 1000];
  if (kind === "silence") return { from, to, kind };
  return { from, to, kind: view && !OF_MOMENTS.includes(view) ? "stretch" : "incident" };
}
