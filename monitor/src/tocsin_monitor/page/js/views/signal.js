/** One signal: its values, its forecast, how anomalous it is, and whether the promise is kept. */

import { address, note } from "../address.js";
import { get, request, signalPath } from "../api.js";
import { ChartGroup } from "../charts/group.js";
import { Columns } from "../columns.js";
import { confirmed } from "../dialogs.js";
import { el, nameOf } from "../dom.js";
import { fleet } from "../fleet.js";
import { incidentCard } from "../incident_card.js";
import { moveFocus, moving as moves } from "../keys.js";
import { attempt } from "../notices.js";
import { moment } from "../format.js";
import { spanOf } from "../incidents.js";
import { askForMaintenance } from "../maintenance_dialog.js";
import { escapePattern } from "../pattern.js";
import { fittingRange, limits, rangeOf, rangeQuery } from "../range.js";
import { rangeBar } from "../range_bar.js";
import { referenceBar, referenceSpans } from "../reference.js";
import { allowed } from "../role.js";
import { importHash, signalHash } from "../router.js";
import { signalDetails } from "../signal_details.js";
import { signalSummary } from "../signal_summary.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {import("../types.js").Incident} Incident */
/** @typedef {import("../range.js").Range} Range */

/** Observations in the charts at most: the monitor chooses those that stand out. */
const POINTS = 5000;
const MOST_INCIDENTS = 50;
const MOST_SPANS = 500;
/** Milliseconds until the audit is loaded anew after an observation: it costs the detector's thread some time. */
const AUDIT_EVERY = 5000;
/** Changes that make the displayed data stale. */
const RELOADED = ["reset", "configured", "reference", "imported"];

/** @type {import("./view.js").View} */
export function signal(main, route) {
  const name = /** @type {string} */ (route.id);
  if (fleet.loaded && !fleet.signals.has(name)) return missing(main, name);
  /** @type {ChartGroup | null} */
  let charts = null;
  /** @type {Columns | null} */
  let columns = null;
  /** @type {Incident[]} Those in the range. */
  let incidents = [];
  let range = rangeOf(route.query) ?? fittingRange(fleet.signals.get(name));
  /** @type {Range[]} What was shown before each zoom. */
  const wider = [];
  /** @type {ReturnType<typeof signalDetails> | null} */
  let shown = null;
  let auditDue = 0;
  let closed = false;

  const summary = el("div", { class: "summary" });
  const chartBox = el("div", { class: "chart-box" }, "Loading…");
  const reference = referenceBar(name, () => load());
  const details = el("div", { class: "panels" });
  const incidentBox = el("div", {});
  const bar = rangeBar((wanted) => choose(wanted), zoomOut);
  main.append(
    el(
      "div",
      { class: "bar" },
      el("a", { class: "back", href: "#/" }, "‹ Signals"),
      el("h1", { tabindex: "-1" }, nameOf(name)),
      offers(),
    ),
    summary,
    bar.element,
    chartBox,
    reference.element,
    details,
    el("section", { class: "panel" }, el("h2", {}, "Incidents"), incidentBox),
  );

  function offers() {
    if (!allowed("operate")) return null;
    return el(
      "div",
      { class: "actions" },
      el("button", { type: "button", onclick: () => askForMaintenance(escapePattern(name)) }, "Maintenance"),
      allowed("write") && el("a", { class: "button", href: importHash(name) }, "Import history"),
      allowed("write") && el("button", { type: "button", class: "danger", onclick: reset }, "Reset"),
    );
  }

  async function reset() {
    const sure = await confirmed(
      "Reset",
      "The detector forgets all it has learned and warms up again. Observations, incidents and the reference are kept.",
      "Reset",
    );
    if (sure && (await attempt(() => request("POST", signalPath(name, "reset")), "Reset"))) load();
  }

  /**
   * @param {Range} wanted
   * @param {boolean} [step] whether Back is to undo it
   */
  function choose(wanted, step = true) {
    range = wanted;
    note(address(signalHash(name), rangeQuery(range)), step);
    bar.show(range, moment(fleet.signals.get(name)?.last_time));
    void loadCharts();
  }

  /** @param {number} from @param {number} to in seconds */
  function zoomIn(from, to) {
    reference.choose(from, to);
    wider.push(range);
    choose({ from: Math.floor(from * 1000), to: Math.ceil(to * 1000) });
  }

  function zoomOut() {
    const before = wider.pop();
    if (before) return choose(before);
    const { from, to } = limits(range, NaN);
    // Opened by a link, there is nothing to go back to.
    if (from !== null && to !== null) choose({ from: from - (to - from), to: to + (to - from) });
    else choose({ last: "all" });
  }

  function spans() {
    const good = referenceSpans(fleet.signals.get(name));
    return [...good, ...(columns?.maintenance() ?? []), ...incidents.map(spanOf)];
  }

  /** What is in sight: a range up to the newest observation moves on with each. */
  function sight() {
    const newest = (columns?.times.at(-1) ?? NaN) * 1000;
    const { from, to } = limits(range, newest);
    return from === null ? null : { from: from / 1000, to: (to ?? newest) / 1000 };
  }

  function drawCharts() {
    if (columns) charts?.update(columns, spans(), sight());
  }

  const loadCharts = () =>
    fillWhenLoaded(chartBox, async () => {
      const asked = range;
      const status = await get(signalPath(name));
      const { from, to } = limits(asked, moment(status.last_time));
      const [since, until] = [from, to].map((time) => (time === null ? null : new Date(time).toISOString()));
      const [history, found] = await Promise.all([
        get(signalPath(name, "history"), { from: since, to: until, points: POINTS }),
        get("/incidents", { signal: name, since, until, limit: MOST_SPANS }),
      ]);
      if (closed || range !== asked) return [charts?.element ?? "Loading…"];
      fleet.put(status);
      drawSummary();
      reference.show(status.reference);
      incidents = found.incidents;
      columns = new Columns(history, status.features.length, 2 * POINTS);
      if (charts === null) {
        charts = new ChartGroup(status, columns, { chosen: zoomIn, out: zoomOut });
        chartBox.replaceChildren(charts.element);
        charts.rebuild();
      }
      drawCharts();
      return [charts.element];
    });

  const loadDetails = () =>
    fillWhenLoaded(details, async () => {
      const [status, found] = await Promise.all([get(signalPath(name)), get(signalPath(name, "details"))]);
      if (closed) return [];
      shown?.close();
      shown = signalDetails(status, found, details);
      return shown.element;
    });

  /** The audit follows what comes, though not each observation. */
  function auditSoon() {
    auditDue ||= setTimeout(async () => {
      await attempt(async () => shown?.update(await get(signalPath(name, "details"))));
      auditDue = 0;
    }, AUDIT_EVERY);
  }

  const loadIncidents = () =>
    fillWhenLoaded(incidentBox, async () => {
      const newest = /** @type {Incident[]} */ (
        (await get("/incidents", { signal: name, limit: MOST_INCIDENTS })).incidents
      );
      return [
        newest.length
          ? el("ul", { class: "cards" }, ...newest.map((incident) => incidentCard(incident, { withSignal: false })))
          : "None so far.",
      ];
    });

  /** Verdicts arrive once the stream is open: those between the charts' data and that moment are requested. */
  async function catchUp() {
    const newest = columns?.times.at(-1);
    if (!columns || !newest || !("last" in range)) return;
    const since = new Date(newest * 1000).toISOString();
    const missed = await get(signalPath(name, "history"), { from: since, points: POINTS });
    if (!closed && columns.addHistory(missed)) drawCharts();
  }

  /** @param {import("../types.js").Verdict} verdict */
  function take(verdict) {
    auditSoon();
    if (!columns || !("last" in range) || !columns.add(verdict)) return;
    const { from } = limits(range, moment(verdict.time));
    if (from !== null) columns.dropBefore(from / 1000);
    // Too much has come since: the monitor chooses anew.
    if (columns.times.length >= 2 * POINTS) void loadCharts();
    else drawCharts();
  }

  function drawSummary() {
    const status = fleet.signals.get(name);
    if (status) summary.replaceChildren(...signalSummary(status));
  }

  function load() {
    void loadCharts();
    void loadDetails();
    void loadIncidents();
  }

  const unlisten = fleet.listen((kind, changed, incident) => {
    drawSummary();
    if (kind !== "incident" || changed !== name) return;
    if (incident) incidents = [incident, ...incidents.filter(({ id }) => id !== incident.id)];
    drawCharts();
    void loadIncidents();
  });
  choose(range, false);
  drawSummary();
  void loadDetails();
  void loadIncidents();

  return {
    title: name,
    signals: [name],
    keys: {
      z: zoomOut,
      ...moves((step) => moveFocus(incidentBox.querySelectorAll(".card"), step)),
    },
    event: (kind, data) => {
      if (kind === "verdict" && data.signal === name) take(data);
      if (kind === "signal" && data.name === name && RELOADED.includes(data.change)) load();
    },
    connected: () => void attempt(catchUp),
    reload: load,
    close: () => {
      closed = true;
      unlisten();
      clearTimeout(auditDue);
      charts?.close();
      shown?.close();
    },
  };
}

/**
 * The page of a signal that is not there, until it is.
 * @param {HTMLElement} main
 * @param {string} name
 */
function missing(main, name) {
  main.append(
    el(
      "div",
      { class: "bar" },
      el("a", { class: "back", href: "#/" }, "‹ Signals"),
      el("h1", { tabindex: "-1" }, nameOf(name)),
    ),
    el("p", {}, "There is no signal of this name, or your token is not for it."),
    el("p", { class: "muted" }, "A signal appears with its first observation."),
  );
  const unlisten = fleet.listen(() => fleet.signals.has(name) && dispatchEvent(new HashChangeEvent("hashchange")));
  return { title: name, close: unlisten };
}
