/** What can be found in a signal, or in those of a template: the monitor injects faults into the past. */

import { get, request, signalPath } from "./api.js";
import { el, fill, nameOf } from "./dom.js";
import { counted, time } from "./format.js";
import { allowed } from "./role.js";
import { signalHash } from "./router.js";

/**
 * @typedef {"none" | "running" | "done" | "cancelled" | "failed"} Stage
 * @typedef {import("./dom.js").Child} Child
 *
 * @typedef {object} Detectable
 * @property {Stage} stage
 * @property {number} done
 * @property {number} total
 * @property {string | null} since
 * @property {string | null} until
 * @property {string[]} sentences
 * @property {string} message
 *
 * @typedef {object} TemplateDetectable
 * @property {Stage} stage
 * @property {number} signals how many it is about
 * @property {number} chosen how many of them it tries
 * @property {string[]} sentences the median of those tried, and the worst
 * @property {(Detectable & {signal: string})[]} tried
 * @property {string} message
 */

/** Milliseconds between two requests for the progress. */
const ASK_EVERY = 1000;
const COUNTS = "A fault counts that raised an incident of its own.";

/**
 * A panel for a signal.
 * @param {string} name the signal's
 */
export function detectablePanel(name) {
  let closed = false;
  const run = runOf(signalPath(name, "detectable"), far, inWords, () => !closed);
  void run.look();
  const element = el("section", { class: "panel" }, el("h2", {}, "What can be found?"), run.element);
  return { element, close: () => (closed = true) };
}

/**
 * The same for a template, to be unfolded.
 * @param {string} match its pattern
 */
export function detectableOfTemplate(match) {
  const path = `/templates/${encodeURIComponent(match)}/-/detectable`;
  const words = "What can be found?";
  const element = el("details", { class: "found" }, el("summary", { "aria-label": `${words} ${match}` }, words));
  const run = runOf(path, farInTemplate, templateInWords, () => element.open && element.isConnected);
  element.addEventListener("toggle", () => element.open && void run.look());
  element.append(run.element);
  return element;
}

/**
 * How far a run is and what it found, with buttons to begin and to end it. It goes on when nobody looks.
 * @template {{stage: Stage}} Found
 * @param {string} path
 * @param {(found: Found) => string} progress
 * @param {(found: Found) => Child[]} words
 * @param {() => boolean} watched whether somebody looks
 */
function runOf(path, progress, words, watched) {
  const result = el("div", { role: "status" });
  const begin = el("button", { type: "button", onclick: () => void follow(request("POST", path)) }, "Inject faults");
  const end = el("button", { type: "button", hidden: true, onclick: () => void ask() }, "End");
  let following = false;

  async function ask() {
    end.disabled = true; // it ends as soon as the detector has learned, or a place is done
    await request("DELETE", path).catch(() => (end.disabled = false));
  }

  /** @param {Promise<Found>} asked */
  async function follow(asked) {
    if (following) return;
    following = begin.disabled = true;
    try {
      let found = await asked;
      for (; found.stage === "running" && watched(); found = await get(path)) {
        end.hidden = false;
        fill(result, [el("p", {}, end.disabled ? "Ending…" : progress(found))]);
        await new Promise((resolve) => setTimeout(resolve, ASK_EVERY));
      }
      if (found.stage !== "running") fill(result, words(found));
    } catch (error) {
      fill(result, [el("p", {}, error instanceof Error ? error.message : String(error))]);
    }
    following = begin.disabled = end.disabled = false;
    end.hidden = true;
  }

  const buttons = allowed("write") && el("div", { class: "actions" }, begin, end);
  return { element: el("div", {}, result, buttons), look: () => follow(get(path)) };
}

/** @param {Detectable} found */
function far({ done, total }) {
  return total ? `Injected faults at ${done} of ${total} places…` : "Learning from the past…";
}

/** @param {Detectable} found */
function inWords(found) {
  const { stage, since, until } = found;
  if (stage === "failed") return [failure(found)];
  if (stage !== "done" || !since || !until) {
    return [el("p", { class: "muted" }, "Faults injected into copies of the stored past show what this detector finds, and how soon.")];
  }
  return [
    list(found.sentences),
    el("p", { class: "muted" }, `From faults injected into the past, ${time(since)} to ${time(until)}. ${COUNTS}`),
  ];
}

/** @param {TemplateDetectable} found */
function farInTemplate({ tried, chosen }) {
  const last = tried.at(-1);
  return last ? `Signal ${tried.length} of ${chosen}, ${last.signal}: ${lowered(far(last))}` : "Starting…";
}

/** @param {TemplateDetectable} found */
function templateInWords(found) {
  const { stage, signals, chosen, sentences, tried } = found;
  if (stage === "failed") return [failure(found)];
  if (!tried.length) {
    return [el("p", { class: "muted" }, "Faults injected into copies of the stored past of a few of its signals show what their detectors find, and how soon. Each signal takes up to two minutes.")];
  }
  const known = tried.filter((one) => one.stage === "done").length;
  const ended = stage === "cancelled" ? ` It was ended before all ${chosen} were tried.` : "";
  return [
    sentences.length > 0 && list(sentences),
    el("p", { class: "muted" }, `From faults injected into the past of ${known} of ${counted(signals, "signal")}.${ended} ${COUNTS}`),
    el("details", {}, el("summary", {}, "Each signal"), ...tried.map(ofSignal)),
  ];
}

/** @param {Detectable & {signal: string}} found */
function ofSignal(found) {
  const ended = found.stage === "failed" ? failure(found) : el("p", {}, "It was ended.");
  const shown = found.stage === "done" ? list(found.sentences) : ended;
  return el("div", { class: "of-signal" }, el("a", { href: signalHash(found.signal) }, nameOf(found.signal)), shown);
}

/** @param {{message: string}} found */
function failure({ message }) {
  return el("p", {}, `It cannot be told: ${message}.`);
}

/** @param {string[]} sentences */
function list(sentences) {
  return el("ul", {}, ...sentences.map((sentence) => el("li", {}, sentence.charAt(0).toUpperCase() + sentence.slice(1))));
}

/** @param {string} sentence */
function lowered(sentence) {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
