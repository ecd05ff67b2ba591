/** One event: its incidents in the order of their start, and where to look first. */

import { get } from "../api.js";
import { el, nameOf } from "../dom.js";
import { acknowledgeButton, eventTags } from "../event_list.js";
import { counted, duration, span, time } from "../format.js";
import { incidentCard } from "../incident_card.js";
import { signalHash } from "../router.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {import("../types.js").Event} Event */
/** @typedef {import("../types.js").Suspect} Suspect */
/** @typedef {import("../types.js").Causes} Causes */
/** @typedef {import("../types.js").Mover} Mover */

const PAGE = 50;
/** Milliseconds in which changes are gathered. */
const GATHERED = 500;
/** Milliseconds until its signals are compared again, which takes the monitor a while. */
const COMPARED = 60_000;

/** @type {import("./view.js").View} */
export function event(main, route) {
  const id = Number(route.id);
  let shown = PAGE;
  let timer = 0;
  let compared = 0;
  /** @type {Causes | null} */
  let causes = null;

  const head = el("h1", { tabindex: "-1" }, `Event ${id}`);
  const box = el("div", {}, "Loading…");
  main.append(el("div", { class: "bar" }, el("a", { class: "back", href: "#/incidents" }, "‹ Incidents"), head), box);

  const load = () => {
    timer = 0;
    return fillWhenLoaded(box, async () => {
      const found = /** @type {Event} */ (await get(`/events/${id}`, { limit: shown }));
      if (found.kind === "alarm" && found.signals > 1 && Date.now() - compared > COMPARED) {
        compared = Date.now();
        void compare();
      }
      head.replaceChildren(el("bdi", {}, found.title));
      const { members = [], suspects = [] } = found;
      const more = found.count > members.length;
      return [
        el(
          "div",
          { class: "bar" },
          el("span", {}, found.open ? `since ${time(found.start)}` : span(found.start, found.closed)),
          eventTags(found),
          acknowledgeButton(found, () => void load()),
        ),
        found.note && el("p", { class: "note" }, found.note),
        where(found, suspects, causes),
        el("h2", {}, counted(found.count, "incident"), " in the order of their start"),
        el("ol", { class: "cards" }, ...members.map((incident) => incidentCard(incident, { withSignal: true }))),
        more && el("button", { type: "button", onclick: showMore }, "Show more"),
      ];
    });
  };

  // The rest of the page does not wait for it.
  async function compare() {
    causes = /** @type {Causes | null} */ (await get(`/events/${id}/causes`).catch(() => causes));
    if (causes) void load();
  }

  function showMore() {
    shown = Math.min(2 * shown, 1000);
    void load();
  }
  void load();

  return {
    title: `Event ${id}`,
    event: (kind, data) => {
      if (kind === "event" && data.id === id) timer ||= setTimeout(load, GATHERED);
    },
    reload: () => void load(),
    close: () => clearTimeout(timer),
  };
}

/**
 * Which signals moved first, and which have moved near them before.
 * @param {Event} event
 * @param {Suspect[]} suspects
 * @param {Causes | null} causes
 */
function where({ kind }, suspects, causes) {
  const began = new Map(causes?.signals.map((one) => [one.signal, one]));
  const order = [...began.keys(), ...suspects.map((one) => one.signal)];
  const ordered = [...suspects].sort((one, other) => order.indexOf(one.signal) - order.indexOf(other.signal));
  return el(
    "section",
    { class: "suspects" },
    el("h2", {}, kind === "silence" ? "First to fall silent" : "First to move"),
    causes && el("p", {}, causes.text),
    el("ol", {}, ...ordered.map((one) => el("li", {}, ...words(one, one === suspects[0], began.get(one.signal))))),
    el("p", { class: "muted" }, "Order and past coincidence show where to look first. They do not show the cause."),
  );
}

/**
 * @param {Suspect} suspect
 * @param {boolean} first whether it is the first of them that was noticed
 * @param {Mover | undefined} mover when it began to move, if its values were compared
 */
function words({ signal, seconds_after_first: after, past_incidents: past, together }, first, mover) {
  const [usual] = together;
  const later = after > 0 && `${duration(1000 * after)} later`;
  return [
    el("a", { href: signalHash(signal) }, nameOf(signal)),
    mover ? `${onset(mover)}; noticed ${later || "first"}` : ` ${later || (first ? "first" : "at the same time")}`,
    ...(usual
      ? [`; in ${usual.times} of its last ${counted(past, "incident")}, `, nameOf(usual.signal), " moved too"]
      : [past ? `; no other one of these moved with it in its last ${counted(past, "incident")}` : ""]),
  ];
}

/** When a signal began to move, how far it went, and what depends on it. @param {Mover} mover */
function onset({ earliest, latest, score, needed_by: needed }) {
  return [
    ` began ${span(earliest, latest)}`,
    score === null ? "" : `, went ${score.toFixed(1)} times its usual spread`,
    needed.length > 1 ? `; ${needed.length} others depend on it` : needed.length ? `; ${needed[0]} depends on it` : "",
  ].join("");
}
