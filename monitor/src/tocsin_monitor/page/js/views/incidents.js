/**
 * Incidents by when they opened, the newest first; those of a large event are one line. What a budget withheld comes by
 * how rare it is.
 */

import { get } from "../api.js";
import { el, fill } from "../dom.js";
import { eventCard } from "../event_list.js";
import { fleet } from "../fleet.js";
import { count, moment } from "../format.js";
import { incidentCard } from "../incident_card.js";
import { label, snooze, toggleAcknowledged } from "../incident_actions.js";
import { KnownEvents, grouped } from "../incident_groups.js";
import { moveFocus, moving } from "../keys.js";
import { attempt } from "../notices.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {import("../types.js").Incident} Incident */

/** Incidents that are asked for at once, and lines that "Show older" adds at least while there are any. */
const PAGE = 200;
const LINES = 50;
/** Milliseconds in which changes are gathered: hundreds of incidents may begin at once. */
const GATHERED = 200;

/** What a budget withheld is counted for so many milliseconds before the newest observation. */
const WEEK = 7 * 86_400_000;

const NEWEST_FIRST = "Ordered by when they opened, the newest first.";
const ABOUT_SUPPRESSED = `${NEWEST_FIRST} Nobody was told of these, because a label of an earlier one like them holds.`;
const ABOUT_WITHHELD =
  "Withheld by the budget in the last 7 days, the rarest first. Nobody was told of these, because the budget went to rarer ones.";

/** @type {import("./view.js").View} */
export function incidents(main, route) {
  const like = route.query.get("like");
  const suppressed = route.query.get("show") === "suppressed";
  const withheld = route.query.get("show") === "withheld";
  const all = suppressed || withheld || like !== null || route.query.get("show") === "all";
  /** @type {Map<number, Incident>} */
  const shown = new Map();
  const events = new KnownEvents();
  const nothing = suppressed
    ? "No label has suppressed an incident."
    : withheld
      ? "The budget has withheld none in the last 7 days."
      : all
        ? "No incidents so far."
        : "No open incidents.";
  let more = false;
  let recount = false;
  let timer = 0;

  const box = el("div", {}, "Loading…");
  const filters = el(
    "div",
    { class: "filters", role: "group", "aria-label": "Filter" },
    el("a", { class: "button", href: "#/incidents", "aria-current": !all && "true" }, "Open"),
    el(
      "a",
      { class: "button", href: "#/incidents?show=all", "aria-current": all && !suppressed && !withheld && !like && "true" },
      "All",
    ),
    el(
      "a",
      { class: "button", href: "#/incidents?show=suppressed", "aria-current": suppressed && "true" },
      "Suppressed",
    ),
  );
  const head = like ? `Incidents like ${like}` : "Incidents";
  const line = el("p", { hidden: true });
  main.append(
    el("div", { class: "bar" }, el("h1", { tabindex: "-1" }, head), filters),
    el("p", { class: "muted" }, suppressed ? ABOUT_SUPPRESSED : withheld ? ABOUT_WITHHELD : NEWEST_FIRST),
    line,
    box,
  );

  const which = { open: all ? null : true, suppressed: suppressed || null, like };
  /** Those a budget withheld lately: no more than a few can still matter. */
  const lately = () => ({ withheld: true, since: weekBefore(newestTime()) });

  /** The line that opens what a budget withheld; there is none while that is nothing. */
  async function countWithheld() {
    recount = false;
    if (suppressed || withheld || like) return;
    const found = await get("/incidents/count", lately()).catch(() => null);
    if (!found) return; // the list says why
    const link = el("a", { href: "#/incidents?show=withheld" }, `${count(found.count)} withheld by the budget`);
    line.hidden = found.count === 0;
    line.replaceChildren(link, " in the last 7 days");
  }

  const loadWithheld = () =>
    fillWhenLoaded(box, async () => {
      const rarest = /** @type {Incident[]} */ (
        (await get("/incidents", { ...lately(), order: "rarest", limit: PAGE })).incidents
      );
      shown.clear();
      for (const incident of rarest) shown.set(incident.id, incident);
      return content();
    });

  /** @param {number | null} before */
  const load = (before) =>
    fillWhenLoaded(box, async () => {
      if (before === null) shown.clear();
      const wanted = LINES + (before === null ? 0 : grouped(shown.values()).length);
      do {
        const page = (await get("/incidents", { ...which, before, limit: PAGE })).incidents;
        for (const incident of page) shown.set(incident.id, incident);
        more = page.length === PAGE;
        before = page.at(-1)?.id ?? null;
      } while (more && grouped(shown.values()).length < wanted);
      await events.learn(grouped(shown.values()));
      return content();
    });

  function content() {
    if (!shown.size) return [el("p", { class: "empty" }, nothing)];
    if (withheld) {
      const cut = shown.size >= PAGE && el("p", { class: "muted" }, `These are the ${count(PAGE)} rarest; there are more.`);
      return [el("ul", { class: "cards" }, ...[...shown.values()].map(card)), cut];
    }
    const oldest = Math.min(...shown.keys());
    const older = el("button", { type: "button", onclick: () => load(oldest) }, "Show older");
    return [el("ul", { class: "cards" }, ...grouped(shown.values()).map(card)), ...(more ? [older] : [])];
  }

  /** @param {Incident | number} line */
  function card(line) {
    if (typeof line !== "number") return incidentCard(line, { withSignal: true });
    const event = events.get(line);
    return event ? eventCard(event, () => void refresh(line)) : null;
  }

  /** @param {number} id of an event */
  async function refresh(id) {
    await attempt(() => events.refresh(id));
    redrawSoon();
  }

  function redrawSoon() {
    timer ||= setTimeout(async () => {
      timer = 0;
      if (recount) void countWithheld();
      await attempt(() => events.learn(grouped(shown.values())));
      redraw();
    }, GATHERED);
  }

  /** Redraw, and keep the focus on the same link or button. */
  function redraw() {
    const focused = document.activeElement;
    const key = keyOf(focused?.closest(".card"));
    const at = key ? focusable(key).indexOf(/** @type {HTMLElement} */ (focused)) : -1;
    fill(box, content());
    if (at >= 0) focusable(key)[at]?.focus();
  }

  /** @param {string} key of a card */
  function focusable(key) {
    const card = [...box.querySelectorAll(".card")].find((one) => keyOf(one) === key);
    return /** @type {HTMLElement[]} */ ([...(card?.querySelectorAll("a, button") ?? [])]);
  }

  /** @param {(incident: Incident) => any} action */
  const onFocused = (action) => () => {
    const id = Number(document.activeElement?.closest("[data-id]")?.getAttribute("data-id"));
    const incident = shown.get(id);
    if (incident) action(incident);
  };

  const unlisten = fleet.listen((_kind, _name, incident) => {
    // A closed incident stays visible until the list is reloaded: it must not vanish under the pointer.
    const fits = suppressed ? incident?.suppressed : like === null && !withheld && (incident?.open || all);
    if (!incident || !(fits || incident.withheld || shown.has(incident.id))) return;
    recount ||= incident.withheld || Boolean(shown.get(incident.id)?.withheld);
    // Which place a new one has among the rarest, the monitor knows.
    if (fits || shown.has(incident.id)) shown.set(incident.id, incident);
    redrawSoon();
  });
  const reload = () => {
    void countWithheld();
    void (withheld ? loadWithheld() : load(null));
  };
  reload();

  return {
    title: "Incidents",
    keys: {
      ...moving((step) => moveFocus(box.querySelectorAll(".card"), step)),
      a: onFocused(toggleAcknowledged),
      s: onFocused(snooze),
      l: onFocused(label),
    },
    event: (kind, data) => {
      if (kind === "event" && events.get(data.id)) void refresh(data.id);
    },
    reload,
    close: () => {
      clearTimeout(timer);
      unlisten();
    },
  };
}

/** When the newest observation of all signals was; now, where there is none. */
function newestTime() {
  let newest = "";
  for (const { last_time: last } of fleet.signals.values()) if (last && last > newest) newest = last;
  return newest ? moment(newest) : Date.now();
}

/** @param {number} time in milliseconds since 1970 */
function weekBefore(time) {
  return new Date(time - WEEK).toISOString();
}

/**
 * Which incident or event a card is of.
 * @param {Element | null | undefined} card
 */
function keyOf(card) {
  const { id, event } = card instanceof HTMLElement ? card.dataset : {};
  return id ? `incident ${id}` : event ? `event ${event}` : "";
}
