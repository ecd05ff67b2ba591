/** Incidents in words. */

import { counted, duration, moment, number, pValue, span, time } from "./format.js";

/** @typedef {import("./types.js").Incident} Incident */

/**
 * What happened, in words.
 * @param {Incident} incident
 */
export function story(incident) {
  if (incident.kind === "silence") {
    const lasted = (incident.closed ? moment(incident.closed) : Date.now()) - moment(incident.start);
    return incident.open ? `no observation for ${duration(lasted)}` : `was silent for ${duration(lasted)}`;
  }
  const deviation = incident.deviation === null ? "" : ` by ${number(Math.abs(incident.deviation))}`;
  const where = incident.direction ? `${incident.direction} the forecast${deviation}, ` : "";
  const alarms = `${counted(incident.alarms, "alarm")} in ${counted(incident.duration, "observation")}`;
  return `${where}${alarms}, p ${pValue(incident.p)}`;
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
export function spanOf({ kind, start, end, closed, open }) {
  const over = kind === "silence" ? (open ? Date.now() : moment(closed)) : moment(end);
  return { from: moment(start) / 1000, to: over / 1000, kind: kind === "silence" ? "silence" : "incident" };
}
