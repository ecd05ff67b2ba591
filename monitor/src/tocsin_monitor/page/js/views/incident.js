/** One incident: what happened, its signal around that time, and which features contributed. */

import { address } from "../address.js";
import { get, signalPath } from "../api.js";
import { ChartGroup } from "../charts/group.js";
import { Columns } from "../columns.js";
import { el, fact, nameOf } from "../dom.js";
import { fleet } from "../fleet.js";
import { moment, number, pValue, severity, time } from "../format.js";
import { label, snooze, toggleAcknowledged } from "../incident_actions.js";
import { actions, tags } from "../incident_card.js";
import { ending, notToBeTold, onset, onsetSpans, ordinal, ranked, rarity, spanOf, story, whatWasSeen, when } from "../incidents.js";
import { paceOf } from "../rates.js";
import { referenceSpans } from "../reference.js";
import { signalHash } from "../router.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {import("../types.js").Incident} Incident */

/** Observations shown before and after it, at least. */
const AROUND = 100;
const MOST_OBSERVATIONS = 5000;
const HOUR = 3_600_000;

/** @type {import("./view.js").View} */
export function incident(main, route) {
  const id = Number(route.id);
  /** @type {Incident | null} */
  let known = null;
  /** @type {ChartGroup | null} */
  let charts = null;
  let closed = false;

  const about = el("div", {}, "Loading…");
  const chartBox = el("div", { class: "chart-box" });
  const head = el("h1", { tabindex: "-1" }, `Incident ${id}`);
  main.append(
    el("div", { class: "bar" }, el("a", { class: "back", href: "#/incidents" }, "‹ Incidents"), head),
    about,
    chartBox,
  );

  const load = () =>
    fillWhenLoaded(about, async () => {
      known = /** @type {Incident} */ (await get(`/incidents/${id}`));
      if (!closed) void loadCharts(known);
      return describe(known);
    });

  /** @param {Incident} found */
  const loadCharts = (found) =>
    fillWhenLoaded(chartBox, async () => {
      const { from, to } = around(found);
      const [status, history] = await Promise.all([
        get(signalPath(found.signal)),
        get(signalPath(found.signal, "history"), { from, to, points: MOST_OBSERVATIONS }),
      ]);
      if (closed) return [];
      charts?.close();
      const columns = new Columns(history, status.features.length, MOST_OBSERVATIONS);
      charts = new ChartGroup(status, columns, undefined, ranked(found).map(([name]) => name));
      chartBox.replaceChildren(charts.element);
      charts.rebuild();
      charts.update(columns, [...referenceSpans(status), ...columns.maintenance(), ...onsetSpans(found), spanOf(found)]);
      return [charts.element];
    });

  /** @param {(incident: Incident) => any} action */
  const onThis = (action) => () => known && action(known);
  const unlisten = fleet.listen((_kind, _name, changed) => {
    if (changed?.id !== id) return;
    if (known?.open && !changed.open) void loadCharts(changed); // the shade ends where the incident did
    known = changed;
    about.replaceChildren(...describe(changed));
  });
  void load();

  return {
    title: `Incident ${id}`,
    keys: { a: onThis(toggleAcknowledged), s: onThis(snooze), l: onThis(label), z: () => charts?.zoomOut() },
    reload: () => void load(),
    close: () => {
      closed = true;
      unlisten();
      charts?.close();
    },
  };
}

/**
 * The period to show.
 * @param {Incident} incident
 */
function around(incident) {
  const signal = fleet.signals.get(incident.signal);
  const { from } = onsetSpans(incident)[0] ?? spanOf(incident);
  // An open one up to the newest observation, not to the clock: there is nothing to see in between.
  const newest = incident.open ? moment(signal?.last_time) / 1000 : NaN;
  const to = Number.isNaN(newest) ? spanOf(incident).to : Math.max(newest, moment(incident.end) / 1000);
  const step = paceOf(signal);
  const margin = Math.max(AROUND * step * 1000 || HOUR, ((to - from) * 1000) / 2);
  return { from: new Date(from * 1000 - margin).toISOString(), to: new Date(to * 1000 + margin).toISOString() };
}

/** @param {Incident} incident */
function describe(incident) {
  const { acknowledged, acknowledged_by: by } = incident;
  const rare = rarity(incident, fleet.signals.get(incident.signal));
  const began = onset(incident);
  const end = ending(incident);
  return [
    el(
      "p",
      { class: "lead" },
      el("a", { href: address(signalHash(incident.signal), around(incident)) }, nameOf(incident.signal)),
      ": ",
      el("bdi", {}, story(incident)),
    ),
    tags(incident),
    el(
      "dl",
      { class: "facts wide" },
      fact("Time", when(incident)),
      incident.kind === "alarm" && fact("Seen", whatWasSeen(incident)),
      incident.view && fact("View", incident.view),
      rare && fact("How rare", rare),
      incident.alike && fact("Alike", alike(incident)),
      began && fact("Noticed late", began),
      incident.advice && fact("Advice", incident.advice),
      incident.kind === "alarm" && fact("Most anomalous at", time(incident.peak)),
      incident.kind === "alarm" && fact("Severity", `${severity(incident.severity)} (p ${pValue(incident.p)})`),
      acknowledged && fact("Acknowledged", `${time(acknowledged)}${by ? ` by ${by}` : ""}`),
      incident.closed && fact("Closed", time(incident.closed)),
      end && fact("Why it closed", end[1]),
    ),
    contributions(incident),
    incident.note && el("p", { class: "note" }, incident.note),
    actions(incident),
  ].filter((part) => part !== null && part !== "");
}

/**
 * A link to those like it.
 * @param {Incident} incident
 */
function alike({ id, alike: what, occurrence }) {
  return el("a", { href: `#/incidents?like=${id}` }, `the ${ordinal(occurrence)} like this: ${what}`);
}

/**
 * @param {string} name
 * @param {number} share
 * @param {number} length from 0 to 1
 * @param {number | null | undefined} p
 */
function bar(name, share, length, p) {
  const line = el("span", { class: "length" });
  line.style.width = `${100 * length}%`;
  const chance = el("dd", {}, typeof p === "number" ? `p ${pValue(p)}` : "");
  return el("div", { class: "fact" }, el("dt", {}, nameOf(name)), el("dd", {}, line), el("dd", {}, number(share)), chance);
}

/**
 * Which features contributed.
 * @param {Incident} incident
 */
function contributions(incident) {
  const sorted = ranked(incident);
  if (sorted.length < 2) return null;
  const most = Math.max(sorted[0][1], 1e-12);
  const unclear = incident.suspects.length > 1;
  return el(
    "section",
    { class: "panel" },
    el("h2", {}, "Features involved"),
    unclear && el("p", {}, "At fault: ", ...notToBeTold(incident.suspects)),
    el("dl", { class: "bars" }, ...sorted.map(([name, share]) => bar(name, share, share / most, incident.feature_p[name]))),
    el("p", { class: "muted" }, "The largest severity that each feature alone would have, and its p at the peak."),
  );
}
