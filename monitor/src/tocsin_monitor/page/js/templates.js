/** The templates: from the settings file or stored, and the way to the signals that came from each. */

import { address } from "./address.js";
import { get, request } from "./api.js";
import { detectableOfTemplate } from "./detectable.js";
import { confirmed } from "./dialogs.js";
import { el, nameOf } from "./dom.js";
import { fleet } from "./fleet.js";
import { ago, counted, duration } from "./format.js";
import { attempt } from "./notices.js";
import { allowed } from "./role.js";
import { ruleWords } from "./settings_fields.js";
import { editTemplate, useFileAgain } from "./template_dialog.js";
import { fillWhenLoaded } from "./views/view.js";

/** @typedef {import("./types.js").ListedTemplate} ListedTemplate */
/** @typedef {(what: () => Promise<boolean>) => Promise<void>} Change does something that may change templates */

/** A panel that loads by itself; it is not replaced while somebody may be about to press something in it. */
export function templatesPanel() {
  const list = el("div", {}, "Loading…");
  const heading = el("h2", { tabindex: "-1" }, "Templates");
  const load = () =>
    fillWhenLoaded(list, async () => {
      const found = /** @type {ListedTemplate[]} */ ((await get("/templates")).templates);
      return [
        found.length ? el("ul", { class: "cards" }, ...found.map((one) => card(one, change))) : el("p", {}, "None."),
      ];
    });
  /** @type {Change} */
  const change = async (what) => {
    if (!(await what())) return;
    await load();
    heading.focus(); // what was pressed is no longer there
  };
  const add = el("button", { type: "button", onclick: () => void change(() => editTemplate(null)) }, "Add a template…");
  void load();
  const element = el(
    "section",
    { class: "panel" },
    el("div", { class: "bar" }, heading, allowed("admin") && add),
    list,
    el(
      "p",
      { class: "muted" },
      "The first template whose pattern matches a new signal's name applies to it. Stored templates take the place of those in the settings file.",
    ),
  );
  return { element, load };
}

/**
 * @param {ListedTemplate} known
 * @param {Change} change
 */
function card(known, change) {
  const { match, stored, file, problem } = known;
  const many = [...fleet.signals.values()].filter(({ template }) => template === match).length;
  const button = (/** @type {string} */ words, /** @type {() => Promise<boolean>} */ what) =>
    el("button", { type: "button", "aria-label": `${words} ${match}`, onclick: () => void change(what) }, `${words}…`);
  const end = file ? button("Use the file's again", () => useFileAgain(known)) : button("Remove", () => remove(match));
  return el(
    "li",
    { class: problem ? "card incident" : "card" },
    el(
      "div",
      { class: "what" },
      el("div", { class: "title" }, nameOf(match)),
      el("div", { class: "muted" }, origin(known)),
      el("div", {}, el("code", {}, JSON.stringify(known.detector)), ...others(known)),
      problem && el("div", { class: "failed" }, `Not in force: ${problem}`),
      el("a", { href: address("#/", { search: match }) }, counted(many, "signal")),
    ),
    allowed("admin") &&
      el("div", { class: "actions" }, button("Change", () => editTemplate(known)), stored && end),
    many > 0 && detectableOfTemplate(match),
  );
}

/** @param {ListedTemplate} known */
function origin({ stored, file, changed, changed_by: by }) {
  if (!stored) return "From the file";
  return `Stored ${ago(changed)}${by ? ` by ${by}` : ""}${file ? ", in place of the file's" : ""}`;
}

/** @param {ListedTemplate} known */
function others({ features, silent_after: silent, unit, every, aggregate, peers, ...rules }) {
  return [
    features && ` · ${features.join(", ")}`,
    unit && ` · ${unit}`,
    ...ruleWords(rules).map(([name, value]) => ` · ${name} ${value}`),
    silent !== null && ` · silent after ${duration(silent * 1000)}`,
    every !== null && ` · ${aggregate} over ${duration(every * 1000)}`,
    peers && " · compared with each other",
  ];
}

/** @param {string} match */
async function remove(match) {
  const text = "New signals get the settings of the next template that matches. Signals that exist stay as they are.";
  return (
    (await confirmed(`Remove template ${match}`, text, "Remove")) &&
    attempt(() => request("DELETE", `/templates/${encodeURIComponent(match)}`), "Template removed")
  );
}
