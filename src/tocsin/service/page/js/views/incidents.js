/** Incidents, the newest first. */

import { get } from "../api.js";
import { el } from "../dom.js";
import { fleet } from "../fleet.js";
import { incidentCard } from "../incident_card.js";
import { label, snooze, toggleAcknowledged } from "../incident_actions.js";
import { moveFocus, moving } from "../keys.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {import("../types.js").Incident} Incident */

const PAGE = 50;

/** @type {import("./view.js").View} */
export function incidents(main, route) {
  const all = route.query.get("show") === "all";
  /** @type {Map<number, Incident>} */
  const shown = new Map();
  let more = false;

  const box = el("div", {}, "Loading…");
  const filters = el(
    "div",
    { class: "filters", role: "group", "aria-label": "Filter" },
    el("a", { class: "button", href: "#/incidents", "aria-current": !all && "true" }, "Open"),
    el("a", { class: "button", href: "#/incidents?show=all", "aria-current": all && "true" }, "All"),
  );
  main.append(el("div", { class: "bar" }, el("h1", { tabindex: "-1" }, "Incidents"), filters), box);

  /** @param {number | null} before */
  const load = (before) =>
    fillWhenLoaded(box, async () => {
      const page = (await get("/incidents", { open: all ? null : true, before, limit: PAGE })).incidents;
      if (before === null) shown.clear();
      for (const incident of page) shown.set(incident.id, incident);
      more = page.length === PAGE;
      return content();
    });

  function content() {
    const newest = [...shown.values()].sort((a, b) => b.id - a.id);
    if (!newest.length) return [el("p", { class: "empty" }, all ? "No incidents so far." : "No open incidents.")];
    const older = el("button", { type: "button", onclick: () => load(newest[newest.length - 1].id) }, "Show older");
    return [
      el("ul", { class: "cards" }, ...newest.map((incident) => incidentCard(incident, { withSignal: true }))),
      ...(more ? [older] : []),
    ];
  }

  /** Redraw, and keep the focus on the same link or button. */
  function redraw() {
    const focused = document.activeElement;
    const id = focused?.closest("[data-id]")?.getAttribute("data-id");
    const at = id ? focusable(id).indexOf(/** @type {HTMLElement} */ (focused)) : -1;
    box.replaceChildren(...content());
    if (id && at >= 0) focusable(id)[at]?.focus();
  }

  /** @param {string} id */
  function focusable(id) {
    return /** @type {HTMLElement[]} */ ([...box.querySelectorAll(`[data-id="${id}"] :is(a, button)`)]);
  }

  /** @param {(incident: Incident) => any} action */
  const onFocused = (action) => () => {
    const id = Number(document.activeElement?.closest("[data-id]")?.getAttribute("data-id"));
    const incident = shown.get(id);
    if (incident) action(incident);
  };

  const unlisten = fleet.listen((_kind, _name, incident) => {
    // A closed incident stays visible until the list is reloaded: it must not vanish under the pointer.
    if (!incident || !(incident.open || all || shown.has(incident.id))) return;
    shown.set(incident.id, incident);
    redraw();
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
    reload: () => void load(null),
    close: unlisten,
  };
}
