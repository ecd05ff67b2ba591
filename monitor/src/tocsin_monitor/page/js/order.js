/** Which signals come first, and which are shown. */

import { isSnoozed } from "./incidents.js";

/** @typedef {import("./types.js").Signal} Signal */
/** @typedef {import("./types.js").Incident} Incident */
/** @typedef {"quarantined" | "incident" | "silent" | "maintenance" | "learning" | "fine"} State */

/** @type {State[]} the worst first */
export const STATES = ["quarantined", "incident", "silent", "maintenance", "learning", "fine"];

/** @type {Record<State, number>} Hundreds may fall silent at once: they must not come between the incidents. */
const RANK = { quarantined: -1, incident: 0, silent: 0.25, maintenance: 1, learning: 1, fine: 1 };

/** @type {[string, string, State | null][]} address, words and state of each filter */
export const FILTERS = [
  ["all", "All", null],
  ["incidents", "Incidents", "incident"],
  ["silent", "Silent", "silent"],
  ["quarantined", "Quarantined", "quarantined"],
  ["maintenance", "Maintenance", "maintenance"],
  ["warming-up", "Learning", "learning"],
];

/** Filters that are there only while they have something to show. */
export const RARE = ["quarantined", "maintenance"];

/** @type {Record<State, string>} */
export const STATE_WORDS = {
  quarantined: "quarantined",
  incident: "incident",
  silent: "silent",
  maintenance: "maintenance",
  learning: "learning",
  fine: "normal",
};

/**
 * How severe an incident is. What is out of range or beyond a limit has no severity: somebody said that it must not be.
 * @param {Incident} incident
 */
const severityOf = ({ kind, severity }) => (["range", "limit"].includes(kind) ? Infinity : (severity ?? 0));

/**
 * The severest open incident of each signal that has one, but for silences.
 * @param {Iterable<Incident>} open
 * @returns {Map<string, Incident>}
 */
export function bySignal(open) {
  /** @type {Map<string, Incident>} */
  const found = new Map();
  for (const incident of open) {
    const known = found.get(incident.signal);
    if (incident.kind !== "silence" && !(known && severityOf(known) > severityOf(incident))) {
      found.set(incident.signal, incident);
    }
  }
  return found;
}

/**
 * @param {Signal} signal
 * @param {Map<string, Incident>} incidents the open ones, by signal
 * @returns {State}
 */
export function stateOf(signal, incidents) {
  if (signal.quarantined) return "quarantined";
  if (incidents.has(signal.name)) return "incident";
  if (signal.silent) return "silent";
  if (signal.maintenance) return "maintenance";
  return signal.warm ? "fine" : "learning";
}

/**
 * Signals that are quarantined and open incidents first, then silent signals, then by the p of the newest observation:
 * p is what the rows show, and counts the same for all signals. Many have the smallest p; the severer ones come first.
 * @param {Iterable<Signal>} signals
 * @param {Map<string, Incident>} incidents
 * @returns {Signal[]}
 */
export function ordered(signals, incidents) {
  const keyed = [...signals].map((signal) => {
    const incident = incidents.get(signal.name);
    // Snoozed or acknowledged incidents come after those that no one has seen yet.
    const known = incident && (incident.acknowledged || isSnoozed(incident)) ? 0.5 : 0;
    const rank = RANK[stateOf(signal, incidents)] + known;
    const severity = incident ? severityOf(incident) : (signal.severity ?? -1);
    return { signal, rank, p: incident ? 0 : (signal.p ?? 2), severity };
  });
  keyed.sort(
    (a, b) => a.rank - b.rank || a.p - b.p || b.severity - a.severity || (a.signal.name < b.signal.name ? -1 : 1),
  );
  return keyed.map(({ signal }) => signal);
}

/** As people count: pump 9 comes before pump 10. */
export const inNames = new Intl.Collator("en", { numeric: true }).compare;

/**
 * @param {Iterable<Signal>} signals
 * @returns {Signal[]}
 */
export function byName(signals) {
  return [...signals].sort((a, b) => inNames(a.name, b.name));
}

/**
 * @param {Signal} signal
 * @param {string} search words that must all be in its name, unit, template or features
 */
export function matches(signal, search) {
  if (!search) return true;
  let text = texts.get(signal);
  if (text === undefined) {
    text = [signal.name, signal.unit ?? "", signal.template ?? "", ...signal.features].join("\n").toLowerCase();
    texts.set(signal, text);
  }
  return wordsOf(search).every((word) => text.includes(word));
}

/** @type {WeakMap<Signal, string>} what is searched in, for thousands of signals at each key */
const texts = new WeakMap();

/** @type {{search: string, words: string[]}} */
let last = { search: "", words: [] };

/** @param {string} search */
function wordsOf(search) {
  if (last.search !== search) last = { search, words: search.toLowerCase().split(/\s+/) };
  return last.words;
}
