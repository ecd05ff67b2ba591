/** What a signal's detector can find: the monitor injects faults into the past, and the page follows it. */

import { get, request, signalPath } from "./api.js";
import { el } from "./dom.js";
import { time } from "./format.js";
import { allowed } from "./role.js";

/**
 * @typedef {object} Detectable
 * @property {"none" | "running" | "done" | "cancelled" | "failed"} stage
 * @property {number} done
 * @property {number} total
 * @property {string | null} since
 * @property {string | null} until
 * @property {string[]} sentences
 * @property {string} message
 */

/** Milliseconds between two requests for the progress. */
const ASK_EVERY = 1000;

/** @param {string} name the signal's */
export function detectablePanel(name) {
  const path = signalPath(name, "detectable");
  const result = el("div", { role: "status" });
  const begin = el("button", { type: "button", onclick: () => void follow(request("POST", path)) }, "Inject faults");
  let closed = false;

  /** @param {Promise<Detectable>} asked */
  async function follow(asked) {
    begin.disabled = true;
    try {
      let found = await asked;
      for (; found.stage === "running" && !closed; found = await get(path)) {
        const far = found.total ? `Injected faults at ${found.done} of ${found.total} places…` : "Learning from the past…";
        result.replaceChildren(el("p", {}, far));
        await new Promise((resolve) => setTimeout(resolve, ASK_EVERY));
      }
      result.replaceChildren(...inWords(found));
    } catch (error) {
      result.replaceChildren(el("p", {}, error instanceof Error ? error.message : String(error)));
    }
    begin.disabled = false;
  }

  void follow(get(path));
  const element = el("section", { class: "panel" }, el("h2", {}, "What can be found?"), result, allowed("write") && begin);
  return { element, close: () => (closed = true) };
}

/** @param {Detectable} found */
function inWords({ stage, since, until, sentences, message }) {
  if (stage === "failed") return [el("p", {}, `It cannot be told: ${message}.`)];
  if (stage !== "done" || !since || !until) {
    return [el("p", { class: "muted" }, "Faults injected into copies of the stored past show what this detector finds, and how soon.")];
  }
  return [
    el("ul", {}, ...sentences.map((sentence) => el("li", {}, sentence.charAt(0).toUpperCase() + sentence.slice(1)))),
    el("p", { class: "muted" }, `From faults injected into the past, ${time(since)} to ${time(until)}. A fault counts that raised an incident of its own.`),
  ];
}
