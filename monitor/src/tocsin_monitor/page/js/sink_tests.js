/** Test messages to sinks: the buttons that send them, and what became of the newest one to each. */

import { request } from "./api.js";
import { el } from "./dom.js";
import { count, counted, time } from "./format.js";
import { attempt, notice } from "./notices.js";

/** @typedef {{name: string, delivered: boolean, error: string | null}} Result */

/** @param {() => void} changed */
export function sinkTests(changed) {
  /** @type {Map<string, Result & {at: number}>} */
  const results = new Map();
  let sending = false;

  /** @param {string | null} name of a sink; null for all of them */
  async function send(name) {
    sending = true;
    changed();
    await attempt(async () => {
      const told = /** @type {Result[]} */ ((await request("POST", "/sinks/test", { name })).sinks);
      for (const one of told) results.set(one.name, { ...one, at: Date.now() });
      const done = told.filter(({ delivered }) => delivered).length;
      notice(`${count(done)} of ${counted(told.length, "test message")} delivered`, done < told.length ? "failed" : "done");
    });
    sending = false;
    changed();
  }

  return {
    /** @param {string | null} name of a sink; null for all of them */
    button(name) {
      const words = name === null ? "Send test messages to all" : "Send test message";
      const label = name === null ? words : `${words} to ${name}`;
      const press = () => sending || send(name);
      return el(
        "button",
        { type: "button", "data-test": name ?? "", "aria-label": label, "aria-disabled": String(sending), onclick: press },
        words,
      );
    },
    /** @param {string} name of a sink */
    result(name) {
      const found = results.get(name);
      if (!found) return null;
      return el(
        "div",
        { class: found.delivered ? "muted" : "failed" },
        found.delivered
          ? `Test message delivered at ${time(found.at)}`
          : `Test message of ${time(found.at)} not delivered: ${found.error}`,
      );
    },
  };
}
