/** Changing a signal's settings: what would change can be tried on stored observations first. */

import { request, signalPath } from "./api.js";
import { el } from "./dom.js";
import { notice } from "./notices.js";
import { settingsFields } from "./settings_fields.js";
import { tryOut } from "./trial.js";
import { trialPanel } from "./trial_panel.js";

/**
 * @param {string} name the signal's
 * @param {import("./types.js").Details} details
 * @param {string | null} unit
 * @param {() => void} close
 */
export function settingsForm(name, { settings, silent_after: silent, rules }, unit, close) {
  const fields = settingsFields({ settings, silent, unit, rules });
  const trial = trialPanel(async (stop, tell) => {
    const wanted = fields.read();
    if (wanted) await tryOut(name, wanted.detector, stop, tell);
  }, fields.problem.refuse);

  /** @param {Event} event */
  async function apply(event) {
    event.preventDefault();
    const wanted = fields.read();
    if (wanted === null) return;
    try {
      await request("PUT", signalPath(name), wanted);
    } catch (error) {
      return fields.problem.refuse(error);
    }
    notice("Settings changed");
    close();
  }

  const element = el(
    "form",
    { class: "settings-form", onsubmit: (/** @type {Event} */ event) => void apply(event) },
    ...fields.elements,
    fields.problem.element,
    trial.result,
    el(
      "div",
      { class: "actions" },
      ...trial.buttons,
      el("button", { type: "submit", class: "primary" }, "Apply"),
      el("button", { type: "button", onclick: () => close() }, "Cancel"),
    ),
    el("p", { class: "muted" }, "With new settings, the detector relearns from the stored observations."),
  );
  return { element, stop: trial.stop };
}
