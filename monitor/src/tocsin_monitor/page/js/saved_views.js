/**
 * Views under a name. They are kept in this browser: a view is an address, which anybody can be sent, so that the monitor
 * need not keep lists of whose views are whose.
 */

import { ask, field } from "./dialogs.js";
import { el } from "./dom.js";

const KEY = "tocsin-views";

/** @typedef {{name: string, hash: string}} SavedView */

/** @returns {SavedView[]} */
function saved() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one?.name === "string" && /^#/.test(one?.hash)) : [];
  } catch {
    return []; // something else has written there
  }
}

/** @param {SavedView[]} views */
function keep(views) {
  localStorage.setItem(KEY, JSON.stringify(views));
}

/** The dialog in which views are opened, removed, and saved. */
export async function openViews() {
  const name = el("input", { name: "view", maxlength: 60, autocomplete: "off" });
  const list = el("ul", { class: "cards views" });
  const draw = () => {
    list.replaceChildren(...saved().map(card));
    if (!list.childElementCount) list.append(el("li", { class: "muted" }, "None saved yet."));
  };
  /** @param {SavedView} view */
  const card = (view) => {
    const remove = () => {
      keep(saved().filter((one) => one.name !== view.name));
      draw();
      name.focus();
    };
    const close = () => list.closest("dialog")?.close();
    return el(
      "li",
      { class: "card" },
      el("a", { class: "what", href: view.hash, onclick: close }, view.name),
      el("button", { type: "button", "aria-label": `Remove ${view.name}`, onclick: remove }, "Remove"),
    );
  };
  draw();
  const given = await ask({
    title: "Saved views",
    body: [list, field("Save what is shown as", name, "Filter, level, signal, range and zone; kept in this browser.")],
    accept: "Save",
    cancel: "Close",
    answer: () => {
      if (name.value.trim()) return name.value.trim();
      name.setCustomValidity("Give the view a name.");
      name.reportValidity();
      name.addEventListener("input", () => name.setCustomValidity(""), { once: true });
      return null;
    },
  });
  if (given === null) return;
  const others = saved().filter((one) => one.name !== given);
  keep([...others, { name: given, hash: location.hash || "#/" }].sort((a, b) => a.name.localeCompare(b.name)));
}
