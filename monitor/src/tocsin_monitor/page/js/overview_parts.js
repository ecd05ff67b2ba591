/** What the overview says around its rows. */

import { el, nameOf } from "./dom.js";
import { budget } from "./rates.js";
import { levelsOf } from "./tree.js";

const WEEK = 7 * 86_400;

/**
 * What the alarm rates add up to, and what shared budgets leave of that.
 * @param {{expected_false_incidents: number, expected_false_reported: number}} status per week
 */
export function falseAlarms({ expected_false_incidents: opened, expected_false_reported: told }) {
  if (!(opened > 0)) return "";
  const limited = told < opened ? `; ${budget(told / WEEK)} reported` : "";
  return `Expected false incidents over all signals: ${budget(opened / WEEK)}${limited}.`;
}

/**
 * The way to a level, with a link to each one above.
 * @param {string} level
 * @param {(path: string) => string} enter the address of a level
 */
export function levelPath(level, enter) {
  const parts = levelsOf(level);
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
