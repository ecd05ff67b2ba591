/** Requests for many signals at once, and what became of each. */

import { request } from "./api.js";
import { tell } from "./dialogs.js";
import { el, nameOf } from "./dom.js";
import { fleet } from "./fleet.js";
import { counted } from "./format.js";
import { notice } from "./notices.js";

/** @typedef {{signal: string, incident: number | null, error: string | null}} Item */

/**
 * Send one request for all, and say what became of them.
 * @param {string} path
 * @param {object} body
 * @param {string} done what was done, in words
 */
export async function send(path, body, done) {
  /** @type {{done: number, failed: number, items: Item[]}} */
  let reply;
  try {
    reply = await request("POST", `/bulk/${path}`, body);
  } catch (error) {
    return notice(error instanceof Error ? error.message : String(error), "failed");
  }
  await report(reply.items, done);
}

/**
 * Say what became of items, and why some failed.
 * @param {Item[]} items
 * @param {string} done what was done, in words
 */
export async function report(items, done) {
  const failed = items.filter(({ error }) => error);
  const well = `${done}: ${items.length - failed.length} done`;
  notice(failed.length ? `${well}, ${failed.length} failed` : well, failed.length ? "failed" : "done");
  await fleet.load();
  if (!failed.length) return;
  await tell(`${counted(failed.length, "item")} failed`, [
    el("ul", { class: "failures" }, ...failed.map(({ signal, error }) => el("li", {}, nameOf(signal), `: ${error}`))),
  ]);
}
