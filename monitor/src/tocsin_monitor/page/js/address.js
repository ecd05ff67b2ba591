/** The address: what is shown is in the part behind "#", so that a link reopens it and Back undoes it. */

import { isUtc, useUtc } from "./zone.js";

/**
 * The address of a view with what is given of it; what is null or empty is left out.
 * @param {string} path such as #/signals/pump
 * @param {Record<string, string | null | undefined>} given
 */
export function address(path, given) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value) query.set(name, value);
  if (isUtc()) query.set("zone", "utc");
  return query.size ? `${path}?${query}` : path;
}

/**
 * Note what is shown without showing it anew.
 * @param {string} wanted from `address`
 * @param {boolean} step whether Back is to undo it
 */
export function note(wanted, step) {
  if (wanted === location.hash) return;
  if (step) history.pushState(null, "", wanted);
  else history.replaceState(null, "", wanted);
}

/** The address without its zone, and the zone that it names.
 * @returns {[string, Record<string, string>, string | undefined]} path, query, zone
 */
function parts() {
  const [path, text] = location.hash.split(/\?(.*)/s);
  const { zone, ...query } = Object.fromEntries(new URLSearchParams(text ?? ""));
  return [path || "#/", query, zone];
}

/** Take the zone that the address names; one without a zone gets the one in use, so that its link has it. */
export function agreeOnZone() {
  const [path, query, named] = parts();
  if (named) useUtc(named === "utc");
  note(address(path, query), false);
}

/** From the browser's zone to UTC, or back. */
export function switchZone() {
  const [path, query] = parts();
  useUtc(!isUtc());
  note(address(path, query), false);
}
