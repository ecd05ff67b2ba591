/** A trial of other settings: the monitor judges stored observations once more, and the page follows it. */

import { get, request, signalPath } from "./api.js";
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
 */

/** Milliseconds between two requests for the progress. */
const ASK_EVERY = 400;

/**
 * Start a trial and follow it to its end.
 * @param {string} name the signal's
 * @param {object} detector
 * @param {AbortSignal} stop ends it
 * @param {(words: string) => void} tell
 */
export async function tryOut(name, detector, stop, tell) {
  const path = signalPath(name, "trial");
  let trial = /** @type {Trial} */ (await request("POST", path, { detector }));
  stop.addEventListener("abort", () => void request("DELETE", path).catch(() => {}));
  while (trial.stage === "running") {
    tell(trial.total ? `Judged ${count(trial.done)} of ${count(trial.total)} observations…` : "Starting…");
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY));
    trial = await get(path);
  }
  tell(inWords(trial));
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
