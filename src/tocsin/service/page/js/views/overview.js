/** All signals: the ones that need attention first. */

import { address, note } from "../address.js";
import { el } from "../dom.js";
import { fleet } from "../fleet.js";
import { count } from "../format.js";
import { moving } from "../keys.js";
import { FILTERS, bySignal, matches, ordered, stateOf } from "../order.js";
import { budget, paceOf } from "../rates.js";
import { allowed } from "../role.js";
import { signalRow } from "../signal_row.js";
import { themeChanges } from "../theme.js";
import { WindowedList } from "../windowed.js";

/** @typedef {import("../types.js").Signal} Signal */

/** Severities change all the time: rows that never stop jumping cannot be read. */
const SORT_EVERY = 5000;
/** Nor may a row jump away from under the pointer. */
const POINTER_RESTS_AFTER = 1500;

/** Where the user was, to come back to. */
let scrolledTo = 0;

/** @type {import("./view.js").View} */
export function overview(main, route) {
  let filter = route.query.get("filter") ?? "all";
  let sorted = /** @type {Signal[]} */ ([]);
  let sortedAt = 0;
  let pointedAt = 0;
  let frame = 0;

  const search = el("input", {
    type: "search",
    placeholder: "Search signals ( / )",
    "aria-label": "Search signals",
    value: route.query.get("search") ?? "",
    spellcheck: "false",
  });
  const offer = allowed("write") && el("a", { class: "button", href: "#/import" }, "Import history");
  const filters = el("div", { class: "filters", role: "group", "aria-label": "Filter" });
  const promise = el("p", { class: "muted" });
  const nothing = el("div", { class: "empty" });
  const row = signalRow(() => open);
  let open = bySignal(fleet.open.values());
  const list = new WindowedList(row, "Signals");
  const buttons = FILTERS.map(([name, words]) => {
    const number = el("b", {});
    const button = el(
      "button",
      { type: "button", class: `filter ${name}`, onclick: () => choose(name) },
      words,
      " ",
      number,
    );
    filters.append(button);
    return { button, number };
  });
  const head = el(
    "div",
    { class: "row head", "aria-hidden": "true" },
    ...["State", "Signal", "Newest values", "Value", "p", "Seen"].map((word) => el("span", {}, word)),
  );
  main.append(
    el("div", { class: "bar" }, el("h1", { tabindex: "-1" }, "Signals"), search, filters, offer),
    promise,
    el("section", { class: "table" }, head, list.element),
    nothing,
  );

  /** @param {string} name */
  function choose(name) {
    filter = name;
    remember(true);
    scrollTo(0, 0);
    draw();
  }

  /** @param {boolean} step whether Back is to undo it */
  function remember(step) {
    note(address("#/", { filter: filter === "all" ? null : filter, search: search.value }), step);
  }

  function sort() {
    sorted = ordered(fleet.signals.values(), open);
    sortedAt = performance.now();
    promise.textContent = falseAlarms(sorted);
  }

  function draw() {
    frame = 0;
    const wanted = FILTERS.find(([name]) => name === filter)?.[2] ?? null;
    const shown = sorted.filter(
      (signal) => (!wanted || stateOf(signal, open) === wanted) && matches(signal, search.value.trim()),
    );
    list.show(shown);
    const states = sorted.map((signal) => stateOf(signal, open));
    FILTERS.forEach(([name, , state], at) => {
      buttons[at].number.textContent = count(state ? states.filter((other) => other === state).length : sorted.length);
      buttons[at].button.setAttribute("aria-pressed", String(name === filter));
    });
    head.hidden = shown.length === 0;
    nothing.replaceChildren(...(shown.length ? [] : [fleet.loaded ? empty(sorted.length > 0) : "Loading…"]));
  }

  /** @param {string} kind */
  function changed(kind) {
    if (kind !== "signals") open = bySignal(fleet.open.values());
    const now = performance.now();
    const due = kind === "signals" ? now - sortedAt > SORT_EVERY : true;
    if (kind === "all" || (due && now - pointedAt > POINTER_RESTS_AFTER)) sort();
    else if (due) sortedAt = -Infinity;
    frame ||= requestAnimationFrame(draw);
  }

  search.addEventListener("input", () => {
    remember(false);
    scrollTo(0, 0);
    draw();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") search.blur();
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      list.focus(0);
    }
  });
  list.element.addEventListener("pointermove", () => (pointedAt = performance.now()), { passive: true });
  const redraw = () => list.draw();
  themeChanges.addEventListener("change", redraw);
  const unlisten = fleet.listen(changed);
  const clock = setInterval(() => changed("signals"), 1000);
  sort();
  draw();
  scrollTo(0, scrolledTo);

  return {
    title: "Signals",
    keys: { "/": () => search.select(), ...moving((step) => list.moveFocus(step)) },
    close: () => {
      scrolledTo = scrollY;
      clearInterval(clock);
      cancelAnimationFrame(frame);
      themeChanges.removeEventListener("change", redraw);
      unlisten();
      list.close();
    },
  };
}

/**
 * What the alarm rates add up to.
 * @param {Signal[]} signals
 */
function falseAlarms(signals) {
  let perSecond = 0;
  for (const signal of signals) {
    const seconds = signal.silent ? NaN : paceOf(signal);
    if (seconds > 0) perSecond += signal.alarm_rate / seconds;
  }
  return perSecond > 0 ? `Expected false incidents over all signals: ${budget(perSecond)}.` : "";
}

/** @param {boolean} filtered */
function empty(filtered) {
  if (filtered) return el("p", {}, "No signal matches.");
  const [address, kind] = [`${location.origin}/api/v1/observations`, "Content-Type: application/json"];
  const example = `curl ${address} -H '${kind}' -d '{"signal": "demo", "value": 1.5}'`;
  return el(
    "div",
    {},
    el("p", {}, "No signals yet. A signal appears with its first observation:"),
    el("pre", {}, el("code", {}, example)),
  );
}
