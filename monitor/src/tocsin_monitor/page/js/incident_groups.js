/** Incidents in a list in which a large event is one line: a gateway that stops must not bury all others. */

import { get } from "./api.js";

/** @typedef {import("./types.js").Incident} Incident */
/** @typedef {import("./types.js").Event} Event */

/** An event of fewer incidents is shown as its incidents: there one can act on each. */
const LARGE = 4;

/**
 * Incidents, and in place of those of a large event its number, where its newest one would be.
 * @param {Iterable<Incident>} incidents
 * @returns {(Incident | number)[]} the newest first
 */
export function grouped(incidents) {
  const newest = [...incidents].sort((a, b) => b.id - a.id);
  /** @type {Map<number | null, number>} */
  const sizes = new Map();
  for (const { event } of newest) sizes.set(event, (sizes.get(event) ?? 0) + 1);
  /** @type {Set<Incident | number>} */
  const lines = new Set();
  for (const incident of newest) {
    const { event } = incident;
    lines.add(event !== null && (sizes.get(event) ?? 0) >= LARGE ? event : incident);
  }
  return [...lines];
}

/** What the monitor says of large events, asked for once each. */
export class KnownEvents {
  /** @type {Map<number, Event>} */
  #known = new Map();

  /** @param {number} id */
  get(id) {
    return this.#known.get(id);
  }

  /**
   * Ask for those of these lines that are not known yet.
   * @param {(Incident | number)[]} lines
   */
  async learn(lines) {
    const unknown = lines.filter((line) => typeof line === "number" && !this.#known.has(line));
    await Promise.all(unknown.map((id) => this.refresh(/** @type {number} */ (id))));
  }

  /** @param {number} id */
  async refresh(id) {
    this.#known.set(id, await get(`/events/${id}`, { limit: 1 }));
  }
}
