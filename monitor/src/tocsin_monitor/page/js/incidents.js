/** Incidents in words. */

import { nameOf } from "./dom.js";
import { counted, duration, moment, number, span, time } from "./format.js";
import { often, paceOf } from "./rates.js";

/** @typedef {import("./types.js").Incident} Incident */

/** Views of single observations; all others look at stretches. Incidents of earlier versions may have "horizons". */
const OF_MOMENTS = ["error", "horizons", "score"];

/** How many features are named besides the first. */
const MOST_NAMED = 3;

/** Why an incident of alarms closed: in a few words, and in a sentence. */
const ENDINGS = /** @type {Record<string, [string, string]>} */ ({
  returned: ["back to normal", "The signal is back to normal."],
  subsided: ["nothing unusual since", "Tocsin cannot tell whether its cause is gone."],
  accepted: ["accepted as normal", "The signal still differs from before, and this now counts as normal."],
  silent: ["no more values", "The signal no longer has values."],
  labelled: ["labelled", "A user labelled it a false alarm: the signal's behaviour now counts as normal."],
  reset: ["detector reset", "The detector was reset."],
  relearned: ["retrained", "The detector was retrained."],
  removed: ["signal removed", "A user removed the signal."],
  imported: ["imported", "It was found in imported history. No notifications were sent."],
});

/**
 * Why it closed, in a few words and in a sentence; null while it is open, or if the reason is unknown.
 * @param {Incident} incident
 * @returns {[string, string] | null}
 */
export function ending({ kind, open, ended }) {
  if (open || !ended) return null;
  if (kind === "silence" && ended === "returned") return ["sending again", "The signal is sending again."];
  if (kind === "range" && ended === "returned") return ["in range again", "The signal is in its valid range again."];
  if (kind === "limit" && ended === "returned") return ["within its limit", "The signal is within its limit again."];
  if (kind === "limit" && ended === "subsided") {
    return ["no longer heads for its limit", "The signal no longer heads for its limit."];
  }
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
  if (incident.kind === "range") {
    const many = counted(incident.duration, "observation");
    return `out of range: ${incident.explanation}; ${many}${incident.open ? " so far" : ""}`;
  }
  if (incident.kind === "limit") return incident.explanation ?? "";
  // The duration of an open incident keeps growing.
  const within = incident.open ? "so far" : `in ${counted(incident.duration, "observation")}`;
  const alarms = `${counted(incident.alarms, "alarm")} ${within}`;
  const seen = whatWasSeen(incident);
  return seen ? `${seen}; ${alarms}` : alarms;
}

/**
 * What was unusual at the peak, in words; older incidents have no explanation, only a direction.
 * @param {Incident} incident
 */
export function whatWasSeen({ explanation, direction, deviation }) {
  if (explanation) return explanation;
  const by = deviation === null ? "" : ` by ${number(Math.abs(deviation))}`;
  return direction ? `${direction} the forecast${by}` : "";
}

/** From so many alike on, incidents recur, and it is told how often. */
const RECURS = 4;

/**
 * How rare such evidence is, in words.
 * @param {Incident} incident
 * @param {import("./types.js").Signal | undefined} signal
 */
export function rarity({ return_period: observations, seen, occurrence, first_alike: first, start }, signal) {
  if (first) {
    const between = duration((moment(start) - moment(first)) / (occurrence - 1));
    return `the ${ordinal(occurrence)} like this since ${time(first)}${occurrence < RECURS ? "" : `, one in ${between}`}`;
  }
  if (!observations || !seen) return null;
  const known = Math.min(observations, seen);
  const length = often(known * paceOf(signal)) || counted(Math.round(known), "observation");
  return observations <= seen ? `about once in ${length}` : `not seen in these ${length}`;
}

/** @param {number} count */
export function ordinal(count) {
  const teens = count % 100 > 10 && count % 100 < 14;
  return `${count}${(!teens && ["", "st", "nd", "rd"][count % 10]) || "th"}`;
}

/**
 * When it began, if it was noticed late.
 * @param {Incident} incident
 */
export function onset({ began_earliest: earliest, began_latest: latest, start }) {
  if (!earliest || !latest || latest >= start) return null;
  return `began between ${time(earliest)} and ${time(latest)}`;
}

/**
 * The span in charts in which it began, if it was noticed late.
 * @param {Incident} incident
 * @returns {import("./charts/marks.js").Span[]}
 */
export function onsetSpans(incident) {
  if (!onset(incident)) return [];
  return [{ from: moment(incident.began_earliest) / 1000, to: moment(incident.start) / 1000, kind: "onset" }];
}

/**
 * Its features with what each contributed, the most first.
 * @param {Incident} incident
 */
export function ranked({ features }) {
  return Object.entries(features ?? {}).sort((a, b) => b[1] - a[1]);
}

/**
 * Features that cannot be told apart, in words.
 * @param {string[]} suspects
 */
export function notToBeTold([first, ...others]) {
  const named = others.slice(0, MOST_NAMED).flatMap((one, at) => [at ? ", " : "", nameOf(one)]);
  const more = others.length > MOST_NAMED ? ` and ${others.length - MOST_NAMED} more` : "";
  return [nameOf(first), ", cannot be told from ", ...named, more];
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
 * The span of an incident in charts; an open one lasts until now.
 * @param {Incident} incident
 * @returns {import("./charts/marks.js").Span}
 */
export function spanOf({ kind, start, end, closed, open, view }) {
  const over = open ? Math.max(Date.now(), moment(end)) : moment(kind === "silence" ? closed : end);
  const [from, to] = [moment(start) / 1000, over / 1000];
  if (kind === "silence") return { from, to, kind };
  return { from, to, kind: view && !OF_MOMENTS.includes(view) ? "stretch" : "incident" };
}
