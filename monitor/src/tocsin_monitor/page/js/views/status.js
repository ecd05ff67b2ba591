/** The state of the monitor itself. */

import { get } from "../api.js";
import { el, fact, nameOf } from "../dom.js";
import { ago, bytes, count, duration, isTime, moment, number, time } from "../format.js";
import { allowed } from "../role.js";
import { signalHash } from "../router.js";
import { sinkTests } from "../sink_tests.js";
import { templatesPanel } from "../templates.js";
import { fillWhenLoaded } from "./view.js";

/** @typedef {ReturnType<typeof sinkTests>} Tests */

const RELOAD_EVERY = 10_000;

/** @type {Record<string, string>} Where the name of a field does not say enough. */
const WORDS = {
  ahead: "Signals ahead of the clock",
  quarantined: "Quarantined signals",
  clock_jump: "It jumped by",
  expected_false_incidents: "Expected false incidents a week",
  expected_false_reported: "Of them reported, at most",
  clock_jumped: "The clock last jumped",
  last_error_time: "Last error",
  silent: "Silent signals",
  learning: "Learning imported history",
  waiting: "Observations waiting",
  warnings: "Signals whose sampling is wrong",
};
/** Lists of signals in trouble: no panel while there are none. */
const TROUBLE = ["quarantined", "ahead", "warnings"];

/** @type {import("./view.js").View} */
export function status(main) {
  const box = el("div", {}, "Loading…");
  const templates = templatesPanel();
  main.append(el("div", { class: "bar" }, el("h1", { tabindex: "-1" }, "Status")), box, templates.element);
  const tests = allowed("admin") ? sinkTests(() => void load()) : null;

  async function load() {
    /** @type {string | null | undefined} */
    let pressed = null;
    await fillWhenLoaded(box, async () => {
      const answer = await get("/status");
      pressed = document.activeElement?.getAttribute("data-test");
      return content(answer, tests);
    });
    // The buttons are new ones: the focus stays on the one that it was on.
    const buttons = /** @type {NodeListOf<HTMLElement>} */ (box.querySelectorAll("[data-test]"));
    [...buttons].find((one) => one.dataset.test === pressed)?.focus();
  }

  const timer = setInterval(() => void load(), RELOAD_EVERY);
  void load();
  return {
    title: "Status",
    event: (kind) => kind === "status" && void load(),
    reload: () => {
      void load();
      void templates.load();
    },
    close: () => clearInterval(timer),
  };
}

/**
 * Every field that the monitor sends is shown: single ones, signals in trouble, and lists of sources and sinks. Null is
 * what has not happened.
 * @param {Record<string, any>} answer
 * @param {Tests | null} tests of sinks, for those who may send them
 */
function content({ ready, progress, outbox = {}, sinks = [], ...others }, tests) {
  const told = {
    state: ready ? "ready" : progress,
    ...others,
    sinks: sinks.map((/** @type {any} */ sink) => ({ ...sink, messages_waiting: outbox[sink.name] ?? 0 })),
  };
  const known = Object.entries(told).filter(([, value]) => value !== null);
  const single = known.filter(([, value]) => typeof value !== "object");
  const parts = known.filter(
    ([name, value]) => typeof value === "object" && (value.length || !TROUBLE.includes(name)),
  );
  return [
    el(
      "section",
      { class: "panel" },
      el("h2", {}, "Monitor"),
      el("dl", { class: "facts wide" }, ...single.map(([name, value]) => fact(words(name), shown(name, value)))),
    ),
    ...parts.map(([name, value]) => {
      const all = name === "sinks" && value.length > 1 && tests?.button(null);
      const heading = el("div", { class: "bar" }, el("h2", {}, words(name)), all);
      return el("section", { class: "panel" }, heading, part(value, name === "sinks" ? tests : null));
    }),
  ];
}

/**
 * @param {any} value a list, a part, or parts by name
 * @param {Tests | null} tests of what is listed
 */
function part(value, tests) {
  const list = Array.isArray(value)
    ? value
    : Object.values(value).every((one) => typeof one === "object" && one !== null)
      ? Object.entries(value).map(([name, one]) => ({ name, ...one }))
      : null;
  if (!list)
    return el(
      "dl",
      { class: "facts wide" },
      ...Object.entries(value).map(([name, one]) => fact(words(name), shown(name, one))),
    );
  if (!list.length) return el("p", {}, "None.");
  return el("ul", { class: "cards" }, ...list.map((one) => (isNeighbour(one) ? health(one, tests) : troubled(one))));
}

/** @param {any} one */
function isNeighbour(one) {
  return typeof one === "object" && "last_error" in one;
}

/** @param {string | {name: string, reason: string}} one a signal in trouble, with the reason where there is one */
function troubled(one) {
  const { name, reason } = typeof one === "string" ? { name: one, reason: "" } : one;
  const link = el("a", { class: "title", href: signalHash(name) }, nameOf(name));
  return el("li", { class: "card incident" }, el("div", { class: "what" }, link, reason && el("div", {}, reason)));
}

/**
 * @param {Record<string, any>} one a source or sink
 * @param {Tests | null} tests
 */
function health(one, tests) {
  const { name, kind, last_error: error, ...others } = one;
  const failing = error && !(moment(one.last_success) > moment(one.last_error_time));
  const facts = Object.entries(others).filter(([field, value]) => value !== null || field === "last_success");
  return el(
    "li",
    { class: failing ? "card incident" : "card" },
    el(
      "div",
      { class: "what" },
      el("div", { class: "title" }, name, kind && el("span", { class: "muted" }, ` ${kind}`)),
      el("dl", { class: "facts wide" }, ...facts.map(([field, value]) => fact(words(field), shown(field, value)))),
      error &&
        el(
          "div",
          { class: failing ? "failed" : "muted" },
          `${failing ? "Error" : "Works again after the error"}: ${error}`,
        ),
      tests?.result(name),
    ),
    tests && el("div", { class: "actions" }, tests.button(name)),
  );
}

/** @param {string} name */
function words(name) {
  const text = WORDS[name] ?? name.replace(/_(bytes|seconds)$/, "").replaceAll("_", " ");
  return text[0].toUpperCase() + text.slice(1);
}

/**
 * @param {string} name
 * @param {any} value
 */
function shown(name, value) {
  if (value === null || value === undefined) return "none yet";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number" && /bytes|size/.test(name)) return bytes(value);
  if (typeof value === "number" && /uptime|seconds|jump/.test(name)) return duration(value * 1000);
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : number(value);
  if (typeof value === "string" && isTime(value)) return `${time(value)} (${ago(value)})`;
  return typeof value === "object" ? JSON.stringify(value) : value;
}
