/** The part of a form with which its settings are tried: a button, what is found, and a way to end it. */

import { el } from "./dom.js";

/** @typedef {(...what: import("./dom.js").Child[]) => void} Tell */

/**
 * @param {(stop: AbortSignal, tell: Tell) => Promise<void>} attempt follows a trial to its end
 * @param {(error: unknown) => void} refuse is told what the monitor refuses
 */
export function trialPanel(attempt, refuse) {
  const result = el("div", { role: "status", class: "trial" });
  const end = el("button", { type: "button", hidden: true, onclick: () => running?.abort() }, "End trial");
  const begin = el("button", { type: "button", onclick: () => void run() }, "Try on stored observations");
  /** @type {AbortController | null} */
  let running = null;
  /** @type {Tell} */
  const tell = (...what) => result.replaceChildren(el("div", {}, ...what));

  async function run() {
    if (running) return;
    running = new AbortController();
    [end.hidden, begin.disabled] = [false, true];
    try {
      await attempt(running.signal, tell);
    } catch (error) {
      result.replaceChildren();
      refuse(error);
    }
    running = null;
    [end.hidden, begin.disabled] = [true, false];
  }

  return { result, buttons: [begin, end], run, tell, stop: () => running?.abort() };
}
