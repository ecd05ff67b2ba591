/** Events of several incidents: one line and one acknowledgement each; the open ones are above the signals. */

import { get, request } from "./api.js";
import { el, nameOf } from "./dom.js";
import { count, counted, severity, time } from "./format.js";
import { icon } from "./icons.js";
import { attempt } from "./notices.js";
import { allowed } from "./role.js";
import { eventHash } from "./router.js";

/** @typedef {import("./types.js").Event} Event */

/** Events that are asked for, and that are shown: those below are in the list of incidents. */
const ASKED = 50;
const SHOWN = 3;
/** Milliseconds in which changes are gathered: hundreds of incidents may begin at once. */
const GATHERED = 500;

/**
 * Acknowledge an event with all its incidents, or take that back.
 * @param {Event} event
 * @param {() => void} then
 */
export function acknowledgeButton(event, then) {
  if (!allowed("operate")) return null;
  const send = async () => {
    const method = event.acknowledged ? "DELETE" : "POST";
    const body = event.acknowledged ? undefined : {};
    const done = event.acknowledged ? "No longer acknowledged" : "Acknowledged";
    await attempt(() => request(method, `/events/${event.id}/acknowledge`, body), done);
    then();
  };
  return el("button", { type: "button", onclick: send }, event.acknowledged ? "Unacknowledge" : "Acknowledge");
}

/** @param {Event} event */
export function eventTags(event) {
  const { open, open_count: going, count: all, acknowledged, acknowledged_by: by } = event;
  return el(
    "span",
    { class: "tags" },
    el("span", { class: `tag ${event.level}` }, event.level),
    el("span", { class: open ? "tag open" : "tag" }, open ? `${count(going)} of ${counted(all, "incident")} open` : "closed"),
    acknowledged && el("span", { class: "tag" }, `acknowledged${by ? ` by ${by}` : ""}`),
    event.label && el("span", { class: `tag label-${event.label.replace(" ", "-")}` }, event.label),
  );
}

/**
 * An event in a list.
 * @param {Event} event
 * @param {() => void} changed
 */
export function eventCard(event, changed) {
  const kind = event.kind === "silence" ? "silent" : "incident";
  const { first, strongest } = event;
  return el(
    "li",
    { class: `card ${event.open ? kind : "over"}`, "data-event": event.id },
    el("span", { class: "mark" }, icon(kind), el("span", { class: "hidden" }, kind)),
    el(
      "div",
      { class: "what" },
      el("a", { class: "title", href: eventHash(event.id) }, el("bdi", {}, event.title)),
      " ",
      eventTags(event),
      el(
        "div",
        { class: "muted" },
        `since ${time(event.start)} · first `,
        nameOf(first.signal),
        event.kind === "alarm" && [
          " · strongest ",
          nameOf(strongest.signal),
          ` (severity ${severity(strongest.severity)})`,
        ],
      ),
    ),
    el("div", { class: "actions" }, acknowledgeButton(event, changed)),
  );
}

/** The list; it is not there while there are none. */
export class OpenEvents {
  #timer = 0;
  #closed = false;

  /** @param {(event: Event) => boolean} wanted which of them to show */
  constructor(wanted) {
    this.wanted = wanted;
    this.element = el("section", { class: "events", "aria-label": "Events", hidden: true });
    void this.#load();
  }

  /** Something changed: look again soon. */
  refresh() {
    this.#timer ||= setTimeout(() => void this.#load(), GATHERED);
  }

  async #load() {
    this.#timer = 0;
    const events = /** @type {Event[]} */ ((await get("/events", { open: true, limit: ASKED }).catch(() => null))?.events);
    if (this.#closed || !events) return; // the page says that it is disconnected
    const several = events.filter((event) => event.count > 1 && this.wanted(event));
    several.sort((a, b) => Number(a.acknowledged !== null) - Number(b.acknowledged !== null) || b.count - a.count);
    const more = several.length - SHOWN;
    this.element.replaceChildren(
      el("h2", {}, "Events"),
      el("ul", { class: "cards" }, ...several.slice(0, SHOWN).map((event) => eventCard(event, () => void this.#load()))),
      ...(more > 0 ? [el("p", {}, el("a", { href: "#/incidents" }, `and ${counted(more, "more event")}`))] : []),
    );
    this.element.hidden = several.length === 0;
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
  }
}
