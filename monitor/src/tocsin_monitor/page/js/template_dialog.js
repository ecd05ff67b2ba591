/** Changing a template: what it would mean for the signals that exist is tried first, and applied if wanted. */

import { request } from "./api.js";
import { report } from "./bulk.js";
import { ask, field, problemLine } from "./dialogs.js";
import { el } from "./dom.js";
import { fleet } from "./fleet.js";
import { counted } from "./format.js";
import { notice } from "./notices.js";
import { fits } from "./pattern.js";
import { settingsFields } from "./settings_fields.js";
import { tryOnMany } from "./trial.js";
import { trialPanel } from "./trial_panel.js";

/** @typedef {import("./types.js").Template} Template */
/** @typedef {{signals: string[], own: string[]}} Affected */

/** How many signals a request is for: each may take seconds, and the user wants to see that it goes on. */
const AT_ONCE = 10;
const AGGREGATES = ["mean", "last", "max", "sum", "count"];
const CHOICES = /** @type {[string, string][]} */ ([
  ["none", "Leave them as they are"],
  ["signals", "Apply it to those that still have their template's settings"],
  ["all", "Apply it to all of them, also to those with settings of their own"],
]);

/**
 * Ask for a template and store it. Returns whether it was stored.
 * @param {import("./types.js").ListedTemplate | null} known null: a new one
 */
export async function editTemplate(known) {
  const text = (/** @type {string} */ name, /** @type {any} */ value, /** @type {object} */ more = {}) =>
    el("input", { name, value: value ?? "", spellcheck: "false", autocomplete: "off", ...more });
  const { detector: settings, silent_after: silent, unit } = known ?? {};
  const fields = settingsFields({ settings, silent, unit, rules: known ?? {} });
  const match = text("match", known?.match, { required: true, readonly: known !== null });
  const every = text("every", known?.every);
  const peers = el("input", { name: "peers", type: "checkbox", checked: known?.peers ?? false });
  const features = el("textarea", { name: "features", rows: 2, spellcheck: "false" }, known?.features?.join("\n"));
  const aggregate = el(
    "select",
    { name: "aggregate" },
    ...AGGREGATES.map((one) => el("option", { value: one, selected: one === known?.aggregate }, one)),
  );
  /** @returns {object | null} */
  const read = () => {
    const wanted = fields.read();
    const names = features.value.split("\n").map((name) => name.trim()).filter(Boolean);
    return wanted && {
      match: match.value.trim(),
      ...wanted,
      ...(names.length && { features: names }),
      ...(every.value.trim() && { every: every.value.trim(), aggregate: aggregate.value }),
      ...(peers.checked && { peers: true }),
    };
  };
  const fitting = el("small", { class: "muted", role: "status" });
  const look = () => {
    const many = [...fleet.signals.keys()].filter((name) => fits(match.value.trim(), name)).length;
    fitting.textContent = `* stands for anything, ? for one character. Matches ${counted(many, "signal")} now.`;
  };
  match.addEventListener("input", look);
  look();
  return await askAndApply({
    title: known ? `Template ${known.match}` : "New template",
    body: [
      el("div", {}, field("Pattern", match), fitting),
      ...fields.elements,
      field("Features", features, "Their names, one in each line; empty for those that arrive."),
      field("Aggregate over", every, "A time such as 1min, which is then the interval; empty to judge each observation."),
      field("Aggregate by", aggregate),
      el("label", { class: "check" }, peers, "The signals should behave alike: also compare new ones with each other"),
    ],
    accept: "Save",
    done: "Template saved",
    problem: fields.problem,
    read,
    store: (template) => request("POST", "/templates", template),
  });
}

/**
 * Ask whether the template of the file is to apply again. Returns whether the stored one was removed.
 * @param {import("./types.js").ListedTemplate} known
 */
export async function useFileAgain(known) {
  return await askAndApply({
    title: `Use the file's ${known.match} again`,
    body: [
      el("p", {}, "The stored template is removed. New signals get the settings of the file:"),
      el("p", {}, el("code", {}, JSON.stringify(known.file?.detector))),
    ],
    accept: "Use the file's again",
    done: "The file's template applies again",
    problem: problemLine(),
    read: () => known.file,
    store: () => request("DELETE", `/templates/${encodeURIComponent(known.match)}`),
  });
}

/**
 * Ask, let it be tried, store it and apply it to the signals chosen. Returns whether it was stored.
 * @param {object} options
 * @param {string} options.title
 * @param {import("./dom.js").Child[]} options.body
 * @param {string} options.accept
 * @param {string} options.done
 * @param {ReturnType<typeof problemLine>} options.problem
 * @param {() => object | null} options.read
 * @param {(template: object) => Promise<Affected>} options.store
 */
async function askAndApply({ title, body, accept, done, problem, read, store }) {
  /** @type {string | null} what was tried last */
  let tried = null;
  let stored = false;
  const boxes = CHOICES.map(([value]) => el("input", { type: "radio", name: "apply", value, checked: value === "none" }));
  const choice = () => boxes.find(({ checked }) => checked)?.value ?? "none";
  const trialOf = (/** @type {object} */ template) => ({ pattern: "*", template, own: choice() !== "signals" });
  const trial = trialPanel(async (stop, tell) => {
    const template = read();
    if (!template) return;
    problem.clear();
    const wanted = trialOf(template);
    await tryOnMany(wanted, stop, tell);
    tried = JSON.stringify(wanted);
  }, problem.refuse);

  async function answer() {
    const template = read();
    if (!template) return null;
    const wanted = JSON.stringify(trialOf(template));
    if (choice() !== "none" && tried !== wanted) {
      await trial.run();
      if (tried === wanted) trial.result.append(el("p", {}, `If this is what you want, press “${accept}” once more.`));
      return null;
    }
    try {
      const affected = await store(template);
      stored = true;
      const names = { none: [], signals: affected.signals, all: [...affected.signals, ...affected.own] }[choice()] ?? [];
      return await apply(names);
    } catch (error) {
      problem.refuse(error);
      return null;
    }
  }

  /**
   * Apply it to some signals after the other, until all have it or the dialog is closed.
   * @param {string[]} names
   */
  async function apply(names) {
    /** @type {import("./bulk.js").Item[]} */
    const items = [];
    for (let first = 0; first < names.length && trial.result.isConnected; first += AT_ONCE) {
      trial.tell(`Saved. Applied to ${first} of ${counted(names.length, "signal")}…`);
      const some = names.slice(first, first + AT_ONCE);
      items.push(...(await request("POST", "/bulk/signals", { signals: some, template: true })).items);
    }
    return { items };
  }

  const result = await ask({
    title,
    body: [
      ...body,
      el(
        "fieldset",
        {},
        el("legend", {}, "Signals that exist"),
        ...CHOICES.map(([, words], place) => el("label", { class: "check" }, boxes[place], words)),
      ),
      problem.element,
      trial.result,
      el("div", { class: "actions" }, ...trial.buttons),
    ],
    accept,
    answer,
  });
  trial.stop();
  if (stored) notice(done);
  if (result?.items.length) await report(result.items, "Applied");
  return stored;
}
