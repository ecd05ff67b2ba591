/** Short notices in the corner, read out too. */

import { byId, el } from "./dom.js";

/**
 * @param {string} text
 * @param {"done" | "failed"} [kind]
 */
export function notice(text, kind = "done") {
  const shown = el("div", { class: `notice ${kind}` }, text);
  byId("notices").append(shown);
  setTimeout(() => shown.remove(), kind === "done" ? 4000 : 9000);
}

/**
 * Do something that may fail, and report the outcome. Returns whether it worked.
 * @param {() => Promise<any>} action
 * @param {string} [done]
 */
export async function attempt(action, done) {
  try {
    await action();
  } catch (error) {
    notice(error instanceof Error ? error.message : String(error), "failed");
    return false;
  }
  if (done) notice(done);
  return true;
}
