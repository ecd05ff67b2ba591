/** The page: puts its parts together, shows the view of the address, hands on events. */

import { agreeOnZone, switchZone } from "./address.js";
import { showConnected, showDisconnected } from "./connection.js";
import { byId, el } from "./dom.js";
import { fleet } from "./fleet.js";
import { count } from "./format.js";
import { isUtc, zoneName } from "./zone.js";
import { setViewKeys, startKeys } from "./keys.js";
import { allowed, currentRole, loadRole } from "./role.js";
import { parseRoute } from "./router.js";
import { Stream } from "./stream.js";
import { startTheme } from "./theme.js";
import { openViews } from "./saved_views.js";
import { forgetToken, token } from "./token.js";
import { accessLog } from "./views/access_log.js";
import { event } from "./views/event.js";
import { importing } from "./views/import.js";
import { incident } from "./views/incident.js";
import { incidents } from "./views/incidents.js";
import { maintenance } from "./views/maintenance.js";
import { overview } from "./views/overview.js";
import { signal } from "./views/signal.js";
import { status } from "./views/status.js";
import { wall } from "./views/wall.js";

/** @type {Record<string, import("./views/view.js").View>} */
const VIEWS = { overview, signal, incidents, incident, event, maintenance, status, accessLog, importing, wall };

/** Milliseconds until everything is asked for again, while the monitor is not ready. */
const RELOAD_AFTER = 3000;

const main = byId("main");
/** @type {import("./views/view.js").Shown | null} */
let shown = null;

const stream = new Stream({
  connected: (resumed) => {
    // Without a place to resume from, what happened in between is unknown.
    if (!resumed || loading) return void reload();
    showConnected();
    shown?.connected?.();
  },
  disconnected: (reason) => showDisconnected(reason, () => stream.retryNow()),
  event: (kind, data) => {
    if (kind === "reset") return void reload();
    if (loading) return void waiting.push([kind, data]);
    take(kind, data);
  },
});

/** @type {[string, any][]} What happens while everything is being loaded comes after it. */
let waiting = [];
let loading = false;

/** @param {string} kind @param {any} data */
function take(kind, data) {
  if (kind === "verdicts") fleet.takeVerdicts(data.signals);
  else if (kind === "incident") fleet.takeIncident(data);
  else if (kind === "signal") fleet.takeChange(data);
  shown?.event?.(kind, data);
}

async function reload() {
  loading = true;
  try {
    await Promise.all([loadRole(), fleet.load()]);
  } catch (error) {
    showDisconnected(error instanceof Error ? error.message : String(error), () => stream.retryNow());
    setTimeout(reload, RELOAD_AFTER);
    return;
  }
  loading = false;
  showConnected();
  const late = waiting;
  waiting = [];
  for (const [kind, data] of late) take(kind, data);
  byId("role").textContent = `Your role: ${currentRole()}`;
  byId("sign-out").hidden = token() === null;
  byId("access-log").hidden = !allowed("admin");
  // The first view waits for the role, which decides what it offers.
  if (shown) shown.reload?.();
  else show();
}

function show() {
  agreeOnZone();
  nameZone();
  const route = parseRoute(location.hash);
  const before = shown;
  shown?.close();
  main.replaceChildren();
  scrollTo(0, 0);
  shown = route ? VIEWS[route.view](main, route) : notFound();
  document.querySelectorAll("nav a").forEach((link) => {
    if (link.getAttribute("data-view") === route?.section) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  setViewKeys(shown.keys ?? {});
  stream.watch(shown.signals ?? []);
  nameWindow();
  // After a change of view, screen readers start at its heading; on load, at the top of the page.
  if (before) main.querySelector("h1")?.focus({ preventScroll: true });
}

function notFound() {
  main.append(el("h1", { tabindex: "-1" }, "Page not found"), el("a", { href: "#/" }, "All signals"));
  return { title: "Not found", close: () => {} };
}

function nameZone() {
  byId("zone").textContent = `Times are in ${zoneName()}`;
  byId("use-zone").hidden = !isUtc() && zoneName() === "UTC";
  byId("use-zone").textContent = isUtc() ? "Use this browser's zone" : "Use UTC";
}

/** The number of open incidents in the title is seen in a tab in the background too. */
function nameWindow() {
  const open = fleet.open.size;
  document.title = `${open ? `(${count(open)}) ` : ""}${shown ? `${shown.title} · ` : ""}Tocsin`;
  byId("open-count").hidden = open === 0;
  byId("open-count").textContent = count(open);
}

startTheme();
startKeys();
byId("views").addEventListener("click", () => void openViews());
byId("use-zone").addEventListener("click", () => {
  switchZone();
  show();
});
byId("sign-out").addEventListener("click", () => {
  forgetToken();
  location.reload();
});
fleet.listen(nameWindow);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part after "#" selects the view
  main.focus();
});
addEventListener("hashchange", () => shown && show());
addEventListener("online", () => stream.retryNow());
document.addEventListener("visibilitychange", () => document.hidden || stream.retryNow());
const first = parseRoute(location.hash);
if (first?.view === "signal" && first.id) stream.watch([first.id]);
stream.start();
