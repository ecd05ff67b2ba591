/** Settings of many signals: only what is filled in changes, and can be tried first. */

import { send } from "./bulk.js";
import { ask } from "./dialogs.js";
import { el } from "./dom.js";
import { counted } from "./format.js";
import { settingsFields } from "./settings_fields.js";
import { tryOnMany } from "./trial.js";
import { trialPanel } from "./trial_panel.js";

/** @param {string[]} names */
export async function askForSettings(names) {
  const many = counted(names.length, "signal");
  const fields = settingsFields({}, "empty to leave it as it is");
  const trial = trialPanel(async (stop, tell) => {
    const wanted = fields.read();
    if (wanted) await tryOnMany({ signals: names, detector: wanted.detector }, stop, tell);
  }, fields.problem.refuse);
  const body = await ask({
    title: `Settings of ${many}`,
    body: [
      el("p", {}, "Only what you fill in changes. Each detector whose settings change relearns from its stored observations."),
      ...fields.elements,
      fields.problem.element,
      trial.result,
      el("div", { class: "actions" }, ...trial.buttons),
    ],
    accept: `Change ${many}`,
    answer: () => {
      const wanted = fields.read();
      if (wanted === null) return null;
      const { detector, ...others } = wanted;
      const settings = Object.keys(detector).length ? wanted : others;
      if (Object.keys(settings).length) return settings;
      fields.problem.refuse("Fill in at least one setting.");
      return null;
    },
  });
  trial.stop();
  if (body) await send("signals", { signals: names, settings: body }, "Settings");
}
