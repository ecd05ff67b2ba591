/** Incidents by when they opened, the newest first; those of a large event are one line. */

import { get } from "../api.js";
import { el, fill } from "../dom.js";
import { eventCard } from "../event_list.js";
import { fleet } from "../fleet.js";
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

const ABOUT_SUPPRESSED = " Nobody was told of these, because a label of an earlier one like them holds.";

/** @type {import("./view.js").View} */
export function incidents(main, route) {
  const like = route.query.get("like");
  const suppressed = route.query.get("show") === "suppressed";
  const all = suppressed || like !== null || route.query.get("show") === "all";
  /** @type {Map<number, Incident>} */
  const shown = new Map();
  const events = new KnownEvents();
  const nothing = suppressed ? "No label has suppressed an incident." : all ? "No incidents so far." : "No open incidents.";
  let more = false;
  let timer = 0;

  const box = el("div", {}, "Loading…");
  const filters = el(
    "div",
    { class: "filters", role: "group", "aria-label": "Filter" },
    el("a", { class: "button", href: "#/incidents", "aria-current": !all && "true" }, "Open"),
    el(
      "a",
      { class: "button", href: "#/incidents?show=all", "aria-current": all && !suppressed && !like && "true" },
      "All",
    ),
    el(
      "a",
      { class: "button", href: "#/incidents?show=suppressed", "aria-current": suppressed && "true" },
      "Suppressed",
    ),
  );
  const head = like ? `Incidents like ${like}` : "Incidents";
  main.append(
    el("div", { class: "bar" }, el("h1", { tabindex: "-1" }, head), filters),
    el("p", { class: "muted" }, `Ordered by when they opened, the newest first.${suppressed ? ABOUT_SUPPRESSED : ""}`),
    box,
  );

  const which = { open: all ? null : true, suppressed: suppressed || null, like };
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
    const fits = suppressed ? incident?.suppressed : like === null && (incident?.open || all);
    if (!incident || !(fits || shown.has(incident.id))) return;
    shown.set(incident.id, incident);
    redrawSoon();
  });
  void load(null);

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
    reload: () => void load(null),
    close: () => {
      clearTimeout(timer);
      unlisten();
    },
  };
}

/**
 * Which incident or event a card is of.
 * @param {Element | null | undefined} card
 */
function keyOf(card) {
  const { id, event } = card instanceof HTMLElement ? card.dataset : {};
  return id ? `incident ${id}` : event ? `event ${event}` : "";
}
