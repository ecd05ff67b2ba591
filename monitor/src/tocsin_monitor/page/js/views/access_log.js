/** The access log: who changed what. */

import { get } from "../api.js";
import { el, nameOf } from "../dom.js";
import { ago, isTime, time } from "../format.js";
import { fillWhenLoaded } from "./view.js";

const AT_ONCE = 100;

/** @typedef {{id: number, time: string, who: string, action: string, target: string, details: string}} AccessEntry */

/** @type {[RegExp, string][]} requests, and what they do in words; the group is the target */
const WORDS = [
  [/^POST \/incidents\/(\d+)\/acknowledge$/, "acknowledged incident"],
  [/^DELETE \/incidents\/(\d+)\/acknowledge$/, "withdrew the acknowledgement of incident"],
  [/^POST \/incidents\/(\d+)\/snooze$/, "snoozed incident"],
  [/^DELETE \/incidents\/(\d+)\/snooze$/, "ended the snooze of incident"],
  [/^POST \/incidents\/(\d+)\/label$/, "labelled incident"],
  [/^POST \/maintenance()$/, "added a maintenance window"],
  [/^DELETE \/maintenance\/(\d+)$/, "removed maintenance window"],
  [/^PUT \/signals\/(.+)\/-\/reference$/, "marked a reference of"],
  [/^DELETE \/signals\/(.+)\/-\/reference$/, "removed the reference of"],
  [/^POST \/signals\/(.+)\/-\/reset$/, "reset the detector of"],
  [/^PUT \/signals\/(.+)\/-\/state$/, "restored the state of"],
  [/^PUT \/signals\/(.+)$/, "created or configured"],
  [/^DELETE \/signals\/(.+)$/, "removed"],
  [/^POST \/templates()$/, "changed a template"],
  [/^DELETE \/templates\/(.+)$/, "removed the stored template"],
  [/^POST \/imports()$/, "imported history"],
  [/^POST \/tokens()$/, "created a token"],
  [/^DELETE \/tokens\/(.+)$/, "revoked token"],
  [/^token create (.+)$/, "created token"],
  [/^token revoke (.+)$/, "revoked token"],
];

/** @type {import("./view.js").View} */
export function accessLog(main) {
  const box = el("div", {}, "Loading…");
  main.append(el("div", { class: "bar" }, el("h1", { tabindex: "-1" }, "Access log")), box);
  const load = () => void fillWhenLoaded(box, async () => content(await page()));
  load();
  return { title: "Access log", reload: load, close: () => {} };
}

/**
 * @param {number} [before]
 * @returns {Promise<AccessEntry[]>}
 */
async function page(before) {
  return (await get("/access-log", { before, limit: AT_ONCE })).access_log;
}

/** @param {AccessEntry[]} entries */
function content(entries) {
  if (!entries.length) return [el("p", { class: "empty" }, "No changes yet.")];
  const list = el("ul", { class: "cards" }, ...entries.map(card));
  const more = el("button", { type: "button" }, "Show older entries");
  more.hidden = entries.length < AT_ONCE;
  let last = entries[entries.length - 1].id;
  more.addEventListener("click", async () => {
    const next = await page(last);
    list.append(...next.map(card));
    more.hidden = next.length < AT_ONCE;
    if (next.length) last = next[next.length - 1].id;
  });
  return [list, more];
}

/** @param {AccessEntry} entry */
function card(entry) {
  return el(
    "li",
    { class: "card" },
    el(
      "div",
      { class: "what" },
      el("div", { class: "title" }, el("strong", {}, entry.who), " ", ...words(entry)),
      el("div", { class: "muted" }, `${time(entry.time)} (${ago(entry.time)})`),
      entry.details && el("div", { class: "muted" }, el("code", {}, inWords(entry.details))),
    ),
  );
}

/**
 * What was sent, as words: "pattern: energy/*, reason: filter change". What was left empty is left out.
 * @param {string} details
 */
function inWords(details) {
  /** @type {unknown} */
  let sent;
  try {
    sent = JSON.parse(details);
  } catch {
    return details; // plain text, or cut off
  }
  if (typeof sent !== "object" || sent === null || Array.isArray(sent)) return details;
  return Object.entries(sent)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => `${name}: ${shown(value)}`)
    .join(", ");
}

/** @param {unknown} value */
function shown(value) {
  if (typeof value === "string") return isTime(value) ? time(value) : value;
  return JSON.stringify(value);
}

/** @param {AccessEntry} entry */
function words(entry) {
  const request = `${entry.action} ${entry.target}`;
  for (const [form, said] of WORDS) {
    const found = form.exec(request);
    if (found) return found[1] ? [said, " ", nameOf(found[1])] : [said];
  }
  return [request];
}
