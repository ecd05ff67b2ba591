/**
 * What a view is: it fills `main` and gives back what the page needs to know of it.
 *
 * @typedef {object} Shown
 * @property {string} title
 * @property {import("../keys.js").Keys} [keys]
 * @property {string[]} [signals] whose every verdict it wants
 * @property {(kind: string, data: any) => void} [event]
 * @property {() => void} [connected] the live stream is there again, or that with its signals
 * @property {() => void} [reload] load everything anew
 * @property {() => void} close
 *
 * @typedef {(main: HTMLElement, route: import("../router.js").Route) => Shown} View
 */

import { el, fill } from "../dom.js";

/**
 * Fill a box with what has to be loaded first; where that fails, say why.
 * @param {HTMLElement} box
 * @param {() => Promise<import("../dom.js").Child[]>} load
 */
export async function fillWhenLoaded(box, load) {
  try {
    fill(box, await load());
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    box.replaceChildren(el("p", { class: "failed" }, `This cannot be shown: ${message}.`));
  }
}
