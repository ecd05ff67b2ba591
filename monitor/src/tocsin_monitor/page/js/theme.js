/** Light or dark: as the system says, until the viewer chooses. */

import { byId, el } from "./dom.js";

const KEY = "tocsin-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
/** Tells charts to draw themselves anew. */
export const themeChanges = new EventTarget();

/** @type {Map<string, string>} */
const colours = new Map();
const probe = el("span", { hidden: true });

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

/**
 * The colour of a theme's variable, as a canvas takes it.
 * @param {string} variable
 */
export function colour(variable) {
  let known = colours.get(variable);
  if (known === undefined) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(${variable})`;
    known = getComputedStyle(probe).color;
    colours.set(variable, known);
  }
  return known;
}

function changed() {
  colours.clear();
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  themeChanges.dispatchEvent(new Event("change"));
}

export function toggleTheme() {
  const chosen = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  localStorage.setItem(KEY, chosen);
  changed();
}

export function startTheme() {
  const chosen = localStorage.getItem(KEY);
  if (chosen) document.documentElement.dataset.theme = chosen;
  system.addEventListener("change", changed);
  byId("theme").addEventListener("click", toggleTheme);
  changed();
}
