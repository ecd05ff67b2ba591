/** Views by the part of the address behind "#". */

/**
 * @typedef {object} Route
 * @property {string} view
 * @property {string} section the view of all that this one belongs to
 * @property {string | null} id the signal's name, or the number of the incident or the event
 * @property {URLSearchParams} query
 */

/** @type {Record<string, [string, string]>} first part of the path: the view of all, the view of one */
const VIEWS = {
  "": ["overview", "overview"],
  signals: ["overview", "signal"],
  incidents: ["incidents", "incident"],
  events: ["incidents", "event"],
  maintenance: ["maintenance", "maintenance"],
  status: ["status", "status"],
  "access-log": ["accessLog", "accessLog"],
  import: ["importing", "importing"],
  wall: ["wall", "wall"],
};

/**
 * @param {string} hash
 * @returns {Route | null}
 */
export function parseRoute(hash) {
  const [path, query] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  const [first, second] = path.split("/");
  const views = VIEWS[first];
  if (!views) return null;
  try {
    const id = second ? decodeURIComponent(second) : null;
    return { view: views[id === null ? 0 : 1], section: views[0], id, query: new URLSearchParams(query ?? "") };
  } catch {
    return null; // a broken escape
  }
}

/** @param {string} name */
export function signalHash(name) {
  return `#/signals/${encodeURIComponent(name)}`;
}

/** @param {number} id */
export function incidentHash(id) {
  return `#/incidents/${id}`;
}

/** @param {number} id */
export function eventHash(id) {
  return `#/events/${id}`;
}

/** @param {string} name the signal whose history is to be imported */
export function importHash(name) {
  return `#/import?${new URLSearchParams({ signal: name })}`;
}
