/** All signals, with the ones that need attention first or by name, as a list or by the levels of their names. */

import { address, note } from "../address.js";
import { get } from "../api.js";
import { bulkBar } from "../bulk_bar.js";
import { el } from "../dom.js";
import { OpenEvents } from "../event_list.js";
import { fleet } from "../fleet.js";
import { count } from "../format.js";
import { moving } from "../keys.js";
import { FILTERS, RARE, byName, bySignal, matches, ordered, stateOf } from "../order.js";
import { emptyOverview, falseAlarms, levelPath } from "../overview_parts.js";
import { overviewRow } from "../overview_row.js";
import { allowed } from "../role.js";
import { Selection } from "../selection.js";
import { themeChanges } from "../theme.js";
import { isIn, treeOf, treeRows } from "../tree.js";
import { WindowedList } from "../windowed.js";

/** @typedef {import("../types.js").Signal} Signal */
/** @typedef {import("../tree.js").TreeRow} TreeRow */

/** Severities change all the time: rows that never stop jumping cannot be read. */
const SORT_EVERY = 5000;
/** Nor may a row jump away from under the pointer. */
const POINTER_RESTS_AFTER = 1500;
/** A level with fewer signals is open at first. */
const FEW = 40;

/** Where the user was, to come back to. */
let scrolledTo = 0;
/** @type {Map<string, boolean>} Levels that the user opened or closed. */
const toggled = new Map();

/** @type {import("./view.js").View} */
export function overview(main, route) {
  let filter = route.query.get("filter") ?? "all";
  let asTree = route.query.get("view") === "tree";
  let named = route.query.get("sort") === "name";
  const level = route.query.get("level") ?? "";
  let sorted = /** @type {Signal[]} */ ([]);
  let rows = /** @type {TreeRow[]} */ ([]);
  let sortedAt = 0;
  let unsorted = true;
  let pointedAt = 0;
  let frame = 0;
  let open = bySignal(fleet.open.values());

  const search = el("input", {
    type: "search",
    placeholder: "Search signals ( / )",
    "aria-label": "Search signals",
    value: route.query.get("search") ?? "",
    spellcheck: "false",
  });
  const filters = el("div", { class: "filters", role: "group", "aria-label": "Filter" });
  const promise = el("p", { class: "muted" });
  const nothing = el("div", { class: "empty" });
  const selection = new Selection(() => draw());
  const bulk = bulkBar(selection, (selecting) => table.classList.toggle("selecting", selecting));
  const list = new WindowedList(
    overviewRow(() => open, selection, { toggle, enter: (path) => address("#/", { ...shownNow(), level: path }) }),
    "Signals",
  );
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
  const kinds = [false, true].map((tree) =>
    el("button", { type: "button", onclick: () => arrange(tree) }, tree ? "Tree" : "List"),
  );
  const inOrder = el("button", { type: "button", onclick: order }, "By name");
  const head = el(
    "div",
    { class: "row head", "aria-hidden": "true" },
    ...["", "State", "Signal", "Newest values", "Value", "p", "Seen"].map((word) => el("span", {}, word)),
  );
  const table = el("section", { class: "table" }, head, list.element);
  const events = new OpenEvents(({ first }) => isIn(first.signal, level));
  const eventBox = el("div", {}, events.element);
  main.append(
    el(
      "div",
      { class: "bar" },
      el("h1", { tabindex: "-1" }, "Signals"),
      search,
      filters,
      el("div", { class: "filters", role: "group", "aria-label": "Arrangement" }, ...kinds),
      inOrder,
      bulk.button,
      allowed("write") && el("a", { class: "button", href: "#/import" }, "Import history"),
    ),
    ...(level ? [levelPath(level, (path) => address("#/", { ...shownNow(), level: path }))] : []),
    promise,
    eventBox,
    bulk.element,
    table,
    nothing,
  );

  /** What the address says, but for the level. */
  function shownNow() {
    const [view, sort] = [asTree ? "tree" : null, named ? "name" : null];
    return { filter: filter === "all" ? null : filter, search: search.value, view, sort };
  }

  /** @param {boolean} step whether Back is to undo it */
  function remember(step) {
    note(address("#/", { ...shownNow(), level }), step);
    scrollTo(0, 0);
    draw();
  }

  /** @param {string} name */
  function choose(name) {
    filter = name;
    remember(true);
  }

  /** @param {boolean} tree */
  function arrange(tree) {
    asTree = tree;
    remember(true);
  }

  function order() {
    named = !named;
    unsorted = true;
    remember(true);
  }

  /** @param {string} path */
  function toggle(path) {
    const row = rows.find((one) => "level" in one && one.level.path === path);
    if (row && "level" in row) toggled.set(path, !row.open);
    draw();
  }

  /** Open the level with the focus, or close it, or go to the one that it is in.
   * @param {boolean} wanted
   */
  function unfold(wanted) {
    const at = list.focused;
    const row = rows[at];
    if (!row) return;
    if ("level" in row && row.open !== wanted) return toggle(row.level.path);
    if (wanted) return list.moveFocus(1);
    const depth = "level" in row ? row.level.depth : row.depth;
    const above = rows.slice(0, at).findLastIndex((one) => "level" in one && one.level.depth < depth);
    if (above >= 0) list.focus(above);
  }

  /** How often nothing is wrong: beside the rows, so it may be missing. */
  function promised() {
    void get("/status").then((told) => (promise.textContent = falseAlarms(told)), () => {});
  }

  function sort() {
    sorted = named ? byName(fleet.signals.values()) : ordered(fleet.signals.values(), open);
    sortedAt = performance.now();
    unsorted = false;
  }

  function draw() {
    frame = 0;
    if (unsorted) sort(); // once for hundreds of incidents that open together
    const wanted = FILTERS.find(([name]) => name === filter)?.[2] ?? null;
    const words = search.value.trim();
    /** @type {Record<string, number>} */
    const counts = {};
    const shown = [];
    for (const signal of sorted) {
      const state = stateOf(signal, open);
      if (!isIn(signal.name, level)) continue;
      counts[state] = (counts[state] ?? 0) + 1;
      counts.all = (counts.all ?? 0) + 1;
      if ((!wanted || state === wanted) && matches(signal, words)) shown.push(signal);
    }
    rows = asTree
      ? treeRows(treeOf(shown, open, level), (one) => toggled.get(one.path) ?? (one.total <= FEW || words !== ""), named)
      : shown.map((signal) => ({ signal, depth: 0, label: signal.name }));
    selection.show(shown.map(({ name }) => name));
    list.show(rows);
    bulk.draw();
    FILTERS.forEach(([name, , state], at) => {
      buttons[at].number.textContent = count(counts[state ?? "all"] ?? 0);
      buttons[at].button.setAttribute("aria-pressed", String(name === filter));
      buttons[at].button.hidden = RARE.includes(name) && name !== filter && !counts[state ?? "all"];
    });
    kinds.forEach((button, at) => button.setAttribute("aria-pressed", String(asTree === Boolean(at))));
    inOrder.setAttribute("aria-pressed", String(named));
    table.classList.toggle("tree", asTree);
    head.hidden = table.hidden = shown.length === 0;
    eventBox.hidden = words !== ""; // whoever searches wants what is found in sight
    nothing.replaceChildren(...(shown.length ? [] : [fleet.loaded ? emptyOverview(sorted.length > 0) : "Loading…"]));
  }

  /** @param {string} kind */
  function changed(kind) {
    if (kind !== "signals") open = bySignal(fleet.open.values());
    const now = performance.now();
    // New values change no names.
    const due = kind !== "signals" || (named ? sortedAt === -Infinity : now - sortedAt > SORT_EVERY);
    if (kind === "all" || (due && now - pointedAt > POINTER_RESTS_AFTER)) unsorted = true;
    else if (due) sortedAt = -Infinity;
    frame ||= requestAnimationFrame(draw);
  }

  search.addEventListener("input", () => remember(false));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") search.blur();
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      if (rows.length) list.focus(0);
    }
  });
  list.element.addEventListener("pointermove", () => (pointedAt = performance.now()), { passive: true });
  const redraw = () => list.draw();
  themeChanges.addEventListener("change", redraw);
  const unlisten = fleet.listen(changed);
  const clock = setInterval(() => changed("signals"), 1000);
  draw();
  promised();
  scrollTo(0, scrolledTo);

  return {
    title: level || "Signals",
    event: (kind) => kind === "event" && events.refresh(),
    reload: () => {
      void events.refresh();
      promised();
    },
    keys: {
      "/": () => search.select(),
      ArrowRight: () => unfold(true),
      ArrowLeft: () => unfold(false),
      ...moving((step) => list.moveFocus(step)),
    },
    close: () => {
      scrolledTo = scrollY;
      clearInterval(clock);
      cancelAnimationFrame(frame);
      events.close();
      themeChanges.removeEventListener("change", redraw);
      unlisten();
      list.close();
    },
  };
}
