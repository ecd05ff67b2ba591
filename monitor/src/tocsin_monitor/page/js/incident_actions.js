/** What people do with an incident: acknowledge, snooze, label. */

import { request } from "./api.js";
import { fleet } from "./fleet.js";
import { askForLabel, askForSnooze } from "./incident_forms.js";
import { isSnoozed } from "./incidents.js";
import { attempt } from "./notices.js";

/** @typedef {import("./types.js").Incident} Incident */

/**
 * Send a change, and show the incident as it is afterwards.
 * @param {Incident} incident
 * @param {string} method
 * @param {string} part
 * @param {object | undefined} body
 * @param {string} done
 */
function send(incident, method, part, body, done) {
  return attempt(async () => {
    const path = `/incidents/${incident.id}`;
    const answer = await request(method, `${path}/${part}`, body);
    fleet.takeIncident(answer?.id === incident.id ? answer : await request("GET", path));
  }, done);
}

/** @param {Incident} incident */
export function toggleAcknowledged(incident) {
  return incident.acknowledged
    ? send(incident, "DELETE", "acknowledge", undefined, "No longer acknowledged")
    : send(incident, "POST", "acknowledge", {}, "Acknowledged");
}

/** @param {Incident} incident */
export async function snooze(incident) {
  if (isSnoozed(incident)) return send(incident, "DELETE", "snooze", undefined, "No longer snoozed");
  const text = "No notifications about this incident until then. It stays in the list.";
  const body = await askForSnooze(`Snooze ${incident.signal}`, text);
  return body && send(incident, "POST", "snooze", body, "Snoozed");
}

/** @param {Incident} incident */
export async function label(incident) {
  const goesOn = incident.open && incident.kind === "alarm";
  const body = await askForLabel({ ...incident, title: `Label ${incident.signal}`, goesOn });
  return body && send(incident, "POST", "label", body, "Saved");
}
