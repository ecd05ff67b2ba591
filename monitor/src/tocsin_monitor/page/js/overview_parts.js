/** What the overview says around its rows. */

import { el, nameOf } from "./dom.js";
import { budget, paceOf } from "./rates.js";

/** @typedef {import("./types.js").Signal} Signal */

/**
 * What the alarm rates add up to.
 * @param {Signal[]} signals
 */
export function falseAlarms(signals) {
  let perSecond = 0;
  for (const signal of signals) {
    const seconds = signal.silent ? NaN : paceOf(signal);
    if (seconds > 0) perSecond += (signal.alarm_rate ?? 0) / seconds;
  }
  return perSecond > 0 ? `Expected false incidents over all signals: ${budget(perSecond)}.` : "";
}

/**
 * The way to a level, with a link to each one above.
 * @param {string} level
 * @param {(path: string) => string} enter the address of a level
 */
export function levelPath(level, enter) {
  const parts = level.split("/");
  const steps = parts.map((part, at) => {
    const last = at === parts.length - 1;
    const path = parts.slice(0, at + 1).join("/");
    return el("li", {}, last ? el("strong", {}, nameOf(part)) : el("a", { href: enter(path) }, nameOf(part)));
  });
  const all = el("li", {}, el("a", { href: enter("") }, "All signals"));
  return el("nav", { class: "path", "aria-label": "Level" }, el("ol", {}, all, ...steps));
}

/** @param {boolean} filtered */
export function emptyOverview(filtered) {
  if (filtered) return el("p", {}, "No signal matches.");
  const [url, kind] = [`${location.origin}/api/v1/observations`, "Content-Type: application/json"];
  const example = `curl ${url} -H '${kind}' -d '{"signal": "demo", "value": 1.5}'`;
  return el(
    "div",
    {},
    el("p", {}, "No signals yet. A signal appears with its first observation:"),
    el("pre", {}, el("code", {}, example)),
  );
}
