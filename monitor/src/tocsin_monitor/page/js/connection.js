/** Whether what is shown is live, and since when it is not. */

import { byId, el } from "./dom.js";
import { time } from "./format.js";

/** @type {number | null} */
let lostSince = null;
/** Why: it changes while a monitor starts, and must not be read out each time. */
const why = el("span", { "aria-live": "off" });

export function showConnected() {
  lostSince = null;
  document.body.classList.remove("stale");
  byId("banner").hidden = true;
  byId("connection").className = "connection live";
  byId("connection").textContent = "live";
}

/**
 * @param {string} reason
 * @param {() => void} retry
 */
export function showDisconnected(reason, retry) {
  byId("connection").className = "connection";
  byId("connection").textContent = "not live";
  document.body.classList.add("stale");
  why.textContent = `(${reason})`;
  if (lostSince !== null) return; // already announced; changing the text would have it read out again
  lostSince = Date.now();
  byId("banner").replaceChildren(
    el("span", {}, `Disconnected since ${time(lostSince)}, trying again… The page may be out of date `, why, "."),
    el("button", { type: "button", onclick: retry }, "Try now"),
  );
  byId("banner").hidden = false;
}
