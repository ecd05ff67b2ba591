/** One signal: its values, its forecast, how anomalous it is, and whether the promise is kept. */

import { get, request, signalPath } from "../api.js";
import { ChartGroup } from "../charts/group.js";
import { Columns } from "../columns.js";
import { confirmed } from "../dialogs.js";
import { el, nameOf } from "../dom.js";
import { fleet } from "../fleet.js";
import { count } from "../format.js";
import { incidentCard } from "../incident_card.js";
import { moveFocus, moving } from "../keys.js";
import { attempt } from "../notices.js";
import { spanOf } from "../incidents.js";
import { askForMaintenance } from "../maintenance_dialog.js";
import { escapePattern } from "../pattern.js";
import { referenceBar, referenceSpans } from "../reference.js";
import { allowed } from "../role.js";
import { importHash } from "../router.js";
import { signalDetails } from "../signal_details.js";
import { signalSummary } from "../signal_summary.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {import("../types.js").Incident} Incident */

const RANGES = [200, 1000, 5000];
const MOST_INCIDENTS = 50;
/** Changes that make the displayed data stale. */
const RELOADED = ["reset", "configured", "reference", "imported"];
/** The range stays as chosen from one signal to the next. */
let range = RANGES[0];

/** @type {import("./view.js").View} */
export function signal(main, route) {
  const name = /** @type {string} */ (route.id);
  /** @type {ChartGroup | null} */
  let charts = null;
  /** @type {Columns | null} */
  let columns = null;
  /** @type {Incident[]} */
  let incidents = [];
  let closeDetails = () => {};
  let closed = false;

  const summary = el("div", { class: "summary" });
  const chartBox = el("div", { class: "chart-box" }, "Loading…");
  const reference = referenceBar(name, () => load());
  const details = el("div", { class: "panels" });
  const incidentBox = el("div", {});
  const ranges = el("div", { class: "filters", role: "group", "aria-label": "Observations shown" });
  const zoomOut = el("button", { type: "button", onclick: () => charts?.zoomOut() }, "Zoom out");
  main.append(
    el(
      "div",
      { class: "bar" },
      el("a", { class: "back", href: "#/" }, "‹ Signals"),
      el("h1", { tabindex: "-1" }, nameOf(name)),
      offers(),
    ),
    summary,
    el(
      "div",
      { class: "bar" },
      ranges,
      zoomOut,
      el("span", { class: "muted hint" }, "drag in a chart to zoom and to select a period, double-click to zoom out"),
    ),
    reference.element,
    chartBox,
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

  function drawRanges() {
    ranges.replaceChildren(
      ...RANGES.map((size) => {
        const choose = () => {
          range = size;
          drawRanges();
          void loadCharts();
        };
        return el(
          "button",
          { type: "button", "aria-pressed": String(size === range), onclick: choose },
          `Last ${count(size)}`,
        );
      }),
    );
  }

  function spans() {
    const good = referenceSpans(fleet.signals.get(name));
    return [...good, ...(columns?.maintenance() ?? []), ...incidents.map(spanOf)];
  }

  const loadCharts = () =>
    fillWhenLoaded(chartBox, async () => {
      const [status, history] = await Promise.all([
        get(signalPath(name)),
        get(signalPath(name, "history"), { limit: range }),
      ]);
      if (closed) return [];
      fleet.signals.set(name, status);
      drawSummary();
      reference.show(status.reference);
      charts?.close();
      columns = new Columns(history, status.features.length, range);
      charts = new ChartGroup(status, columns, reference.choose);
      chartBox.replaceChildren(charts.element);
      charts.rebuild();
      charts.update(columns, spans());
      return [charts.element];
    });

  const loadDetails = () =>
    fillWhenLoaded(details, async () => {
      const { element, close } = signalDetails(await get(signalPath(name, "details")), details);
      closeDetails();
      closeDetails = close;
      return element;
    });

  const loadIncidents = () =>
    fillWhenLoaded(incidentBox, async () => {
      incidents = (await get("/incidents", { signal: name, limit: MOST_INCIDENTS })).incidents;
      if (columns) charts?.update(columns, spans());
      return [
        incidents.length
          ? el("ul", { class: "cards" }, ...incidents.map((incident) => incidentCard(incident, { withSignal: false })))
          : "None so far.",
      ];
    });

  /** Verdicts arrive once the stream is open: those between the charts' data and that moment are requested. */
  async function catchUp() {
    const newest = columns?.times.at(-1);
    if (!columns || !newest) return;
    const since = new Date(newest * 1000).toISOString();
    const missed = await get(signalPath(name, "history"), { from: since, limit: range });
    if (!closed && columns.addHistory(missed)) charts?.update(columns, spans());
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

  const unlisten = fleet.listen((kind, changed) => {
    drawSummary();
    if (kind === "incident" && changed === name) void loadIncidents();
  });
  drawRanges();
  drawSummary();
  load();

  return {
    title: name,
    signals: [name],
    keys: {
      z: () => charts?.zoomOut(),
      ...moving((step) => moveFocus(incidentBox.querySelectorAll(".card"), step)),
    },
    event: (kind, data) => {
      if (kind === "verdict" && data.signal === name && columns?.add(data)) charts?.update(columns, spans());
      if (kind === "signal" && data.name === name && RELOADED.includes(data.change)) load();
    },
    connected: () => void attempt(catchUp),
    reload: load,
    close: () => {
      closed = true;
      unlisten();
      charts?.close();
      closeDetails();
    },
  };
}
