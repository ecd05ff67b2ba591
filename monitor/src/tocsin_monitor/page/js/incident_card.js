/** An incident in a list: what, when, how severe, and the actions on it. */

import { el, nameOf } from "./dom.js";
import { fleet } from "./fleet.js";
import { time } from "./format.js";
import { icon } from "./icons.js";
import { label, snooze, toggleAcknowledged } from "./incident_actions.js";
import { ending, isSnoozed, notToBeTold, onset, ranked, rarity, story, when } from "./incidents.js";
import { allowed } from "./role.js";
import { incidentHash } from "./router.js";

/** @typedef {import("./types.js").Incident} Incident */

/**
 * Tags with its state.
 * @param {Incident} incident
 */
export function tags(incident) {
  const { acknowledged, acknowledged_by: by, snoozed_until: until, excluded, withheld, suppressed, below_minimum: minor } = incident;
  const end = ending(incident);
  const over = end ? `closed: ${end[0]}` : "closed";
  return el(
    "span",
    { class: "tags" },
    el("span", { class: `tag ${incident.level}` }, incident.level),
    el("span", { class: incident.open ? "tag open" : "tag" }, incident.open ? "open" : over),
    acknowledged && el("span", { class: "tag" }, `acknowledged${by ? ` by ${by}` : ""}`),
    isSnoozed(incident) && el("span", { class: "tag" }, `snoozed until ${time(until)}`),
    incident.label && el("span", { class: `tag label-${incident.label.replace(" ", "-")}` }, labelWords(incident)),
    excluded && el("span", { class: "tag" }, "excluded from calibration"),
    withheld && el("span", { class: "tag", title: "The budget is for rarer incidents: no message was sent." }, "not reported"),
    minor && el("span", { class: "tag", title: "Below the signal's minimum: no message was sent." }, "below minimum"),
    suppressed && el("span", { class: "tag", title: "A label holds: no message was sent." }, "suppressed"),
  );
}

/**
 * Its label, and where that is from or for what else it holds.
 * @param {Incident} incident
 */
function labelWords({ label, label_of: from, holds }) {
  if (from) return `${label}, like incident ${from}`;
  return holds ? `${label}, and the next ones like it` : label;
}

/** @param {Incident} incident */
export function actions(incident) {
  if (!allowed("operate")) return null;
  return el(
    "div",
    { class: "actions" },
    el(
      "button",
      { type: "button", onclick: () => toggleAcknowledged(incident) },
      incident.acknowledged ? "Unacknowledge" : "Acknowledge",
    ),
    incident.open &&
      el("button", { type: "button", onclick: () => snooze(incident) }, isSnoozed(incident) ? "End snooze" : "Snooze"),
    el("button", { type: "button", onclick: () => label(incident) }, "Label"),
  );
}

/**
 * @param {Incident} incident
 * @param {{withSignal: boolean}} options
 */
export function incidentCard(incident, { withSignal }) {
  const kind = incident.kind === "silence" ? "silent" : "incident";
  const rare = incident.kind === "alarm" && rarity(incident, fleet.signals.get(incident.signal));
  const { suspects } = incident;
  const features = ranked(incident);
  const blamed = features.length > 1 && [
    " · mostly ",
    ...(suspects.length > 1 ? notToBeTold(suspects) : [nameOf(features[0][0])]),
  ];
  return el(
    "li",
    { class: `card ${incident.open ? kind : "over"}`, "data-id": incident.id },
    el("span", { class: "mark" }, icon(kind), el("span", { class: "hidden" }, kind)),
    el(
      "div",
      { class: "what" },
      el(
        "a",
        { class: "title", href: incidentHash(incident.id) },
        withSignal ? nameOf(incident.signal) : when(incident),
      ),
      el("div", {}, el("bdi", {}, story(incident)), blamed),
      el(
        "div",
        { class: "muted" },
        [withSignal && when(incident), onset(incident), rare].filter(Boolean).join(" · "),
        " ",
        tags(incident),
      ),
      incident.note && el("div", { class: "note" }, incident.note),
    ),
    actions(incident),
  );
}
