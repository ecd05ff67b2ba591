/** The token that the API asks for: kept for this tab, or in this browser if the viewer wants that. */

import { el } from "./dom.js";
import { ask, field } from "./dialogs.js";

const KEY = "tocsin-token";

export function token() {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
}

/** @type {Promise<void> | null} */
let asking = null;

/**
 * Ask for a token. However many requests were refused, there is one dialog; it cannot be cancelled.
 * @param {string | null} refused the token that the API refused
 */
export function askForToken(refused) {
  if (token() !== refused) return Promise.resolve(); // another request was refused too, and there is an answer already
  asking ??= dialog(refused).finally(() => (asking = null));
  return asking;
}

/** @param {string | null} refused */
async function dialog(refused) {
  const input = el("input", {
    type: "password",
    name: "token",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
  });
  const remember = el("input", { type: "checkbox", name: "remember" });
  const given = await ask({
    title: "Sign in",
    body: [
      el("p", {}, refused ? "This token is not valid, or no longer valid." : "This monitor requires a token."),
      field("Token", input),
      el("label", { class: "check" }, remember, "Remember it in this browser"),
      el(
        "p",
        { class: "muted" },
        "Create tokens with ",
        el("code", {}, "tocsin token create"),
        " on the monitor's machine.",
      ),
    ],
    accept: "Continue",
    cancel: null,
    answer: () => input.value.trim() || null,
  });
  forgetToken();
  (remember.checked ? localStorage : sessionStorage).setItem(KEY, given ?? "");
}
