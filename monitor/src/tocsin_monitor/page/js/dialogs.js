/** Dialogs: a title, a form, an answer. */

import { el } from "./dom.js";

/**
 * A labelled input.
 * @param {string} label
 * @param {HTMLElement} input
 * @param {string} [hint]
 */
export function field(label, input, hint) {
  return el("label", { class: "field" }, el("span", {}, label), input, hint && el("small", { class: "muted" }, hint));
}

/** A line of a form that says what is wrong, read out at once. */
export function problemLine() {
  const element = el("p", { role: "alert", class: "failed" });
  return {
    element,
    clear: () => (element.textContent = ""),
    /** @param {unknown} error what the monitor said, or words */
    refuse: (error) => (element.textContent = error instanceof Error ? error.message : String(error)),
  };
}

/**
 * Show a dialog; returns what `answer` returns, or null when it is cancelled.
 * @template Answer
 * @param {object} options
 * @param {string} options.title
 * @param {import("./dom.js").Child[]} options.body
 * @param {string} options.accept the text of the button
 * @param {string | null} [options.cancel] "": no cancel button, null: it cannot be cancelled
 * @param {boolean} [options.danger]
 * @param {() => Answer | null | Promise<Answer | null>} options.answer null: not complete yet
 * @returns {Promise<Answer | null>}
 */
export function ask({ title, body, accept, cancel = "Cancel", danger = false, answer }) {
  return new Promise((resolve) => {
    /** @type {Answer | null} */
    let given = null;
    let answering = false;
    const before = document.activeElement;
    // The form is never sent anywhere: the page's policy forbids it.
    const submit = async (/** @type {Event} */ event) => {
      event.preventDefault();
      if (answering) return;
      answering = true; // the button is not disabled: the focus would be lost
      given = await answer();
      answering = false;
      if (given !== null) dialog.close();
    };
    const heading = el("h2", { id: "dialog-title" }, title);
    const buttons = el(
      "div",
      { class: "buttons" },
      cancel && el("button", { type: "button", onclick: () => dialog.close() }, cancel),
      el("button", { type: "submit", class: danger ? "danger" : "primary" }, accept),
    );
    const dialog = el(
      "dialog",
      { "aria-labelledby": "dialog-title" },
      el("form", { onsubmit: submit }, heading, ...body, buttons),
    );
    dialog.addEventListener("cancel", (event) => cancel === null && event.preventDefault());
    dialog.addEventListener("close", () => {
      // Browsers close a dialog at the second Escape whatever the page says.
      if (cancel === null && given === null) return dialog.showModal();
      dialog.remove();
      if (before instanceof HTMLElement) before.focus();
      resolve(given);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * Ask for confirmation.
 * @param {string} title
 * @param {string} text
 * @param {string} accept
 */
export async function confirmed(title, text, accept) {
  return (await ask({ title, body: [el("p", {}, text)], accept, danger: true, answer: () => true })) === true;
}

/**
 * Show something that needs no answer.
 * @param {string} title
 * @param {import("./dom.js").Child[]} body
 */
export function tell(title, body) {
  return ask({ title, body, accept: "Close", cancel: "", answer: () => true });
}
