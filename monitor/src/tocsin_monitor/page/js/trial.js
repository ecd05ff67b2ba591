/** A trial of other settings: the monitor judges stored observations once more, and the page follows it. */

import { get, request, signalPath } from "./api.js";
import { el, nameOf } from "./dom.js";
import { count, counted, duration, moment, time } from "./format.js";

/**
 * @typedef {object} Trial
 * @property {"running" | "done" | "cancelled" | "failed"} stage
 * @property {string} since
 * @property {string | null} until
 * @property {number} done
 * @property {number} total
 * @property {number} incidents
 * @property {number} raised
 * @property {boolean} complete
 * @property {boolean} warm
 * @property {string} message
 *
 * @typedef {object} ManyTrial
 * @property {number} number
 * @property {"running" | "done" | "cancelled" | "failed"} stage
 * @property {number} signals how many it is about
 * @property {number} chosen how many of them it tries at most
 * @property {number} tried
 * @property {number} done
 * @property {number} incidents
 * @property {number} raised
 * @property {{signal: string, incidents: number, raised: number}[]} found those that change most come first
 * @property {{signal: string, error: string}[]} failed
 * @property {boolean} complete
 * @property {boolean} warm
 * @property {string} message
 *
 * @typedef {import("./trial_panel.js").Tell} Tell
 */

/** Milliseconds between two requests for the progress. */
const ASK_EVERY = 400;
/** How many signals are named. */
const MOST_NAMED = 5;

/**
 * Ask for a trial's progress until it is over.
 * @template {{stage: string}} Progress
 * @param {string} path
 * @param {Progress} trial
 * @param {AbortSignal} stop ends it
 * @param {(trial: Progress) => void} show
 */
async function follow(path, trial, stop, show) {
  stop.addEventListener("abort", () => void request("DELETE", path).catch(() => {}));
  for (; trial.stage === "running"; trial = await get(path)) {
    show(trial);
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY));
  }
  return trial;
}

/**
 * Start a trial of one signal and follow it to its end.
 * @param {string} name the signal's
 * @param {object} detector
 * @param {AbortSignal} stop ends it
 * @param {Tell} tell
 */
export async function tryOut(name, detector, stop, tell) {
  const path = signalPath(name, "trial");
  const begun = /** @type {Trial} */ (await request("POST", path, { detector }));
  const trial = await follow(path, begun, stop, ({ total, done }) =>
    tell(total ? `Judged ${count(done)} of ${count(total)} observations…` : "Starting…"),
  );
  tell(inWords(trial));
}

/**
 * Start a trial of many signals and follow it to its end.
 * @param {object} body which signals, and the settings or the template
 * @param {AbortSignal} stop ends it
 * @param {Tell} tell
 */
export async function tryOnMany(body, stop, tell) {
  const begun = /** @type {ManyTrial} */ (await request("POST", "/trials", body));
  const trial = await follow(`/trials/${begun.number}`, begun, stop, ({ tried, chosen, done }) =>
    tell(`Tried ${tried} of ${counted(chosen, "signal")}, judged ${counted(done, "observation")}…`),
  );
  tell(...manyInWords(trial));
}

/** @param {Trial} trial */
export function inWords({ stage, since, until, incidents, raised, complete, warm, message }) {
  if (stage === "failed") return `The trial failed: ${message}.`;
  if (stage === "cancelled") return "The trial was ended.";
  if (until === null) return "There are no stored observations to try this on.";
  const days = duration(moment(until) - moment(since));
  const result = `Would have raised ${counted(incidents, "incident")} in the last ${days} instead of ${count(raised)}.`;
  const partly = complete ? "" : ` Judged only up to ${time(until)}.`;
  const cold = warm ? "" : " At first the detector was still warming up, and could not raise any.";
  return result + partly + cold;
}

/**
 * What a trial of many found, and on how many of them.
 * @param {ManyTrial} trial
 */
export function manyInWords({ stage, signals, tried, incidents, raised, found, failed, complete, warm, message }) {
  if (stage === "failed") return [`The trial failed: ${message}.`];
  const refused = failed.length
    ? el("p", {}, `${counted(failed.length, "signal")} cannot have these settings, such as `, nameOf(failed[0].signal), `: ${failed[0].error}.`)
    : null;
  if (!tried) return [el("p", {}, stage === "cancelled" ? "The trial was ended." : "No signal could be tried."), refused];
  const whole = tried === signals ? `all ${counted(signals, "signal")}` : `${tried} of ${counted(signals, "signal")}`;
  const early = stage === "cancelled" ? " The trial was ended." : " It reached the limit of a trial, and ended early.";
  const cold = warm ? "" : " At first some detectors were still warming up, and could not raise any.";
  const changes = found.filter((one) => one.incidents !== one.raised).slice(0, MOST_NAMED);
  return [
    el("p", {}, `Would have raised ${counted(incidents, "incident")} in the last 7 days instead of ${count(raised)}.`),
    el("p", {}, `Tried on ${whole}.${complete ? "" : early}${cold}`),
    changes.length > 0 && [el("p", {}, "Those that change most:"), el("ul", {}, ...changes.map(change))],
    refused,
  ];
}

/** @param {{signal: string, incidents: number, raised: number}} found */
function change({ signal, incidents, raised }) {
  return el("li", {}, nameOf(signal), `: ${count(incidents)} instead of ${count(raised)}`);
}
