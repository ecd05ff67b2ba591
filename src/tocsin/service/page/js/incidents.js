/** Incidents in words. */

import { counted, duration, moment, number, span, time } from "./format.js";
import { often, spacing } from "./rates.js";

/** @typedef {import("./types.js").Incident} Incident */

/** Views of single observations; all others see stretches. */
const OF_MOMENTS = ["error", "horizons", "score"];

/** Why an incident of alarms is over: in a few words, and in a sentence. */
const ENDINGS = /** @type {Record<string, [string, string]>} */ ({
  returned: ["back to normal", "The signal is back to normal."],
  accepted: ["accepted as normal", "The signal changed for good: this is accepted as the new normal."],
  silent: ["no more values", "The signal has no more values."],
  labelled: ["as labelled", "A user labelled it a false alarm: the signal's behaviour is accepted as normal."],
  reset: ["detector reset", "The detector was reset."],
  relearned: ["retrained", "The detector was retrained."],
  imported: ["of the past", "It was found in imported history: no alert was sent."],
});

/**
 * Why it is over, in a few words and in a sentence; null while it is open, or if unknown.
 * @param {Incident} incident
 * @returns {[string, string] | null}
 */
export function ending({ kind, open, ended }) {
  if (open || !ended) return null;
  if (kind === "silence" && ended === "returned") return ["sending again", "The signal is sending again."];
  return ENDINGS[ended] ?? [ended, ended];
}

/**
 * What happened, in words.
 * @param {Incident} incident
 */
export function story(incident) {
  if (incident.kind === "silence") {
    const lasted = (incident.closed ? moment(incident.closed) : Date.now()) - moment(incident.start);
    return incident.open ? `no observation for ${duration(lasted)}` : `was silent for ${duration(lasted)}`;
  }
  // While it goes on it becomes longer all the time.
  const within = incident.open ? "so far" : `in ${counted(incident.duration, "observation")}`;
  const alarms = `${counted(incident.alarms, "alarm")} ${within}`;
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
export function when({ kind, start, end, open, closed }) {
  if (open) return `since ${time(start)}`;
  return span(start, kind === "silence" ? closed : end);
}

/** @param {Incident} incident */
export function isSnoozed(incident) {
  return incident.snoozed_until !== null && moment(incident.snoozed_until) > Date.now();
}

/**
 * Where an incident is in charts: one that goes on, up to now.
 * @param {Incident} incident
 * @returns {import("./charts/marks.js").Span}
 */
export function spanOf({ kind, start, end, closed, open, view }) {
  const over = open ? Math.max(Date.now(), moment(end)) : moment(kind === "silence" ? closed : end);
  const [from, to] = [moment(start) / 1000, over / 1000];
  if (kind === "silence") return { from, to, kind };
  return { from, to, kind: view && !OF_MOMENTS.includes(view) ? "stretch" : "incident" };
}
