/** The current state of a signal in a few facts. */

import { el, fact } from "./dom.js";
import { fleet, perFeature } from "./fleet.js";
import { ago, count, pValue, time, values } from "./format.js";
import { icon } from "./icons.js";
import { bySignal, stateOf, STATE_WORDS } from "./order.js";
import { budget, odds, paceOf } from "./rates.js";
import { incidentHash } from "./router.js";

/** What the alarm rate counts, in words. */
const NAMES = { incidents: "incidents", observations: "alarms" };

/** @param {import("./types.js").Signal} signal */
export function signalSummary(signal) {
  const incidents = bySignal(fleet.open.values());
  const state = stateOf(signal, incidents);
  const incident = incidents.get(signal.name);
  const words =
    state === "learning" ? `learning, ${count(signal.observations)} of ${count(signal.warm_up)}` : STATE_WORDS[state];
  const perSecond = (signal.alarm_rate ?? 0) / paceOf(signal);
  return [
    el(
      "dl",
      { class: "facts wide" },
      fact(
        "State",
        el(
          "span",
          { class: "state", "data-state": state },
          icon(state),
          incident ? el("a", { href: incidentHash(incident.id) }, words) : words,
        ),
      ),
      signal.warm &&
        signal.observations < signal.own_past_after &&
        fact("Rarity", `estimated until observation ${count(signal.own_past_after)}`),
      // Of a signal that is quarantined nothing else is known.
      ...(signal.quarantined
        ? [fact("Why", `${signal.quarantined}; configure it, reset it or remove it`)]
        : [
            fact("Value", el("span", { class: "live-value" }, values(perFeature(signal.value), signal.unit))),
            fact("p", el("span", { class: "live-value" }, pValue(signal.p))),
            fact("Seen", el("span", { class: "live-value" }, `${time(signal.last_time)} (${ago(signal.last_time)})`)),
            fact("Observations", count(signal.observations)),
            fact("Alarm rate", odds(signal.alarm_rate)),
            perSecond > 0 && fact(`Expected false ${NAMES[signal.promise]}`, budget(perSecond)),
          ]),
      signal.template && fact("Template", signal.template),
      signal.warning && fact("Warning", signal.warning),
    ),
  ];
}
