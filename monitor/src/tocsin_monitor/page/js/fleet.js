/** All signals and the open incidents, kept up to date by events. */

import { ApiError, get, request, signalPath } from "./api.js";
import { moment } from "./format.js";
import { fits } from "./pattern.js";

/** @typedef {import("./types.js").Signal} Signal */
/** @typedef {import("./types.js").Incident} Incident */
/** @typedef {import("./types.js").Verdict} Verdict */

/**
 * Is told which signal and incident changed.
 * @typedef {(kind: string, name: string | null, incident: Incident | null) => void} Listener
 */

/** Observations of a sparkline. */
const RECENT = 60;
/** When more signals than this have changed at once, it is quicker to load all. */
const MOST_SINGLE_LOADS = 10;
const MOST_INCIDENTS = 1000;
/** Of so many signals the newest observations are asked for at once, after so many milliseconds. */
const MOST_RECENT = 60;
const TOGETHER = 30;

/**
 * @param {(number | null)[] | number | null | undefined} value
 * @returns {(number | null)[]}
 */
export function perFeature(value) {
  return Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];
}

/**
 * All of them: a signal of which one was left out would pass for normal.
 * @returns {Promise<Incident[]>}
 */
async function openIncidents() {
  /** @type {Incident[]} */
  const found = [];
  /** @type {Incident[]} */
  let page;
  do {
    const before = found.at(-1)?.id ?? null;
    page = (await get("/incidents", { open: true, before, limit: MOST_INCIDENTS })).incidents;
    found.push(...page);
  } while (page.length === MOST_INCIDENTS);
  return found;
}

/**
 * @param {Record<string, any[]>} columns
 * @returns {Map<string, Signal>}
 */
function fromColumns(columns) {
  const fields = Object.entries(columns);
  return new Map(
    columns.name.map((name, at) => {
      const signal = Object.fromEntries(fields.map(([field, column]) => [field, column[at]]));
      signal.features ??= ["value"];
      return [name, /** @type {Signal} */ (/** @type {unknown} */ ({ ...signal, alarm: false, recent: null }))];
    }),
  );
}

class Fleet {
  /** @type {Map<string, Signal>} */
  signals = new Map();
  /** @type {Map<number, Incident>} The open ones. */
  open = new Map();
  loaded = false;
  /** @type {import("./types.js").Maintenance[]} */
  #windows = [];
  /** @type {Set<Listener>} */
  #listeners = new Set();
  /** @type {Set<string>} Signals whose status has to be asked for. */
  #outdated = new Set();
  #timer = 0;
  /** @type {Set<string>} Signals whose newest observations are to be asked for. */
  #wanted = new Set();

  /**
   * Be told of changes: "signals" (newest values), "incident" (what is open or silent) or "all".
   * @param {Listener} listener
   * @returns {() => void} to be told no more
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @param {string} kind @param {string | null} [name] @param {Incident | null} [incident] */
  #tell(kind, name = null, incident = null) {
    for (const listener of this.#listeners) listener(kind, name, incident);
  }

  async load() {
    const [signals, incidents, { maintenance }] = await Promise.all([
      get("/overview"),
      openIncidents(),
      get("/maintenance"),
    ]);
    this.signals = fromColumns(signals);
    this.#windows = maintenance;
    for (const signal of this.signals.values()) signal.maintenance = this.#isInWindow(signal);
    this.open = new Map(incidents.map((incident) => [incident.id, incident]));
    this.loaded = true;
    this.#outdated.clear();
    this.#tell("all");
  }

  /**
   * The status of a signal that was asked for.
   * @param {Signal} signal
   */
  put(signal) {
    signal.maintenance = this.signals.get(signal.name)?.maintenance ?? this.#isInWindow(signal);
    this.signals.set(signal.name, signal);
  }

  /**
   * Whether its newest observation was not judged, because of a maintenance window.
   * @param {Signal} signal
   */
  #isInWindow({ name, last_time: last }) {
    const at = moment(last);
    return this.#windows.some(
      ({ pattern, schedule, occurrences, ...whole }) =>
        fits(pattern, name) &&
        (schedule ? occurrences : [whole]).some(({ start, end }) => moment(start) <= at && (end === null || at < moment(end))),
    );
  }

  /**
   * The newest verdicts of many signals.
   * @param {Record<string, Verdict>} verdicts
   */
  takeVerdicts(verdicts) {
    for (const [name, verdict] of Object.entries(verdicts)) {
      const signal = this.signals.get(name);
      if (!signal) this.#refresh(name);
      else if (!(moment(verdict.time) <= moment(signal.last_time))) this.#takeVerdict(signal, verdict);
    }
    this.#tell("signals");
  }

  /** @param {Signal} signal @param {Verdict} verdict */
  #takeVerdict(signal, verdict) {
    // In a maintenance window there is no verdict, and all that one says is missing.
    const { time, p = null, severity = null, alarm = false } = verdict;
    if (signal.recent) signal.recent = [...signal.recent.slice(1 - RECENT), [time, perFeature(verdict.value)[0] ?? null, p, alarm]];
    signal.last_time = time;
    signal.silent = false;
    signal.maintenance = verdict.status === "maintenance";
    signal.value = perFeature(verdict.value);
    signal.observations = verdict.observations ?? signal.observations + 1;
    Object.assign(signal, { p, severity, alarm, warm: verdict.warm ?? signal.warm });
  }

  /**
   * Ask for the newest observations of a signal soon, together with those of others in sight.
   * @param {string} name
   */
  wantRecent(name) {
    if (!this.#wanted.size) setTimeout(() => void this.#loadRecent(), TOGETHER);
    this.#wanted.add(name);
  }

  async #loadRecent() {
    const names = [...this.#wanted].slice(0, MOST_RECENT);
    try {
      const query = new URLSearchParams(names.map((name) => ["signals", name]));
      const found = (await request("GET", `/recent?${query}`)).recent;
      for (const name of names) {
        const signal = this.signals.get(name);
        if (signal && signal.recent === null) signal.recent = found[name] ?? [];
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error; // they are asked for again with the next drawing
    }
    for (const name of names) this.#wanted.delete(name);
    if (this.#wanted.size) void this.#loadRecent();
    this.#tell("signals");
  }

  /** @param {Incident} incident */
  takeIncident(incident) {
    const signal = this.signals.get(incident.signal);
    if (incident.open) this.open.set(incident.id, incident);
    else this.open.delete(incident.id);
    if (signal && incident.kind === "silence") signal.silent = incident.open;
    this.#tell("incident", incident.signal, incident);
  }

  /** @param {{name: string, change: string}} event */
  takeChange({ name, change }) {
    const signal = this.signals.get(name);
    if (change === "removed") {
      this.signals.delete(name);
      for (const [id, incident] of this.open) if (incident.signal === name) this.open.delete(id);
      this.#tell("incident", name);
    } else if (signal && (change === "silent" || change === "sending")) {
      signal.silent = change === "silent";
      this.#tell("incident", name);
    } else {
      this.#refresh(name);
    }
  }

  /**
   * Ask for a signal's status soon, together with others.
   * @param {string} name
   */
  #refresh(name) {
    this.#outdated.add(name);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#loadOutdated(), 300);
  }

  async #loadOutdated() {
    const names = [...this.#outdated];
    this.#outdated.clear();
    try {
      if (names.length > MOST_SINGLE_LOADS) return await this.load();
      for (const signal of await Promise.all(names.map((name) => get(signalPath(name))))) {
        this.put(signal);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error; // it is gone again, or the next event will try again
    }
    this.#tell("incident");
  }
}

export const fleet = new Fleet();
