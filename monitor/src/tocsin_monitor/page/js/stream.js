/**
 * What happens at the monitor, as it happens. Read with fetch, because EventSource cannot send a token.
 *
 * The connection resumes where it broke off (Last-Event-ID); if that is not possible, the monitor sends
 * "reset" and everything has to be reloaded.
 */

import { authorizedFetch } from "./api.js";
import { EventStreamParser } from "./sse.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 30_000;
/** The monitor sends something at least every 15 s: a connection that is silent for longer than this is dead. */
const LONGEST_SILENCE = 40_000;
/** Milliseconds for which a stream is read after another one took its place: what was sent before arrives in them. */
const OVERLAP = 1000;

/**
 * @typedef {object} Handlers
 * @property {(kind: string, data: any) => void} event
 * @property {(resumed: boolean) => void} connected `resumed`: nothing was missed
 * @property {(reason: string) => void} disconnected called once for every failed attempt
 */

export class Stream {
  /** @type {string | null} */
  #lastId = null;
  /** @type {string[]} */
  #signals = [];
  /** @type {AbortController | null} The stream that is being read. */
  #live = null;
  /** @type {Set<string> | null} The ids that were handed on while two streams are read: both may send an event. */
  #handed = null;
  /** The number of the newest `#keep`: older ones end. */
  #newest = 0;
  #wait = FIRST_WAIT;
  #wake = () => {};

  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.handlers = handlers;
  }

  /** Connect, and stay connected. */
  start() {
    void this.#keep();
  }

  /**
   * Ask for every verdict of these signals too.
   * @param {string[]} signals
   */
  watch(signals) {
    if (signals.join("\n") === this.#signals.join("\n")) return;
    this.#signals = signals;
    if (this.#newest) void this.#keep();
  }

  /** Try again now, if not connected. */
  retryNow() {
    this.#wait = FIRST_WAIT;
    this.#wake();
  }

  async #keep() {
    const mine = (this.#newest += 1);
    const superseded = () => mine !== this.#newest;
    while (!superseded()) {
      await this.#connect(superseded);
      if (!superseded()) await this.#pause();
    }
  }

  /**
   * One stream, until it ends. The one before it is read until a little after this one is there, so that nothing is
   * missed.
   * @param {() => boolean} superseded
   */
  async #connect(superseded) {
    const before = this.#live;
    const attempt = new AbortController();
    let silence = 0;
    const listen = () => {
      clearTimeout(silence);
      silence = setTimeout(() => attempt.abort(), LONGEST_SILENCE);
    };
    const handed = (this.#handed = before ? new Set(this.#handed) : null);
    try {
      const response = await this.#ask(attempt.signal, before ? null : this.#lastId);
      if (superseded()) return attempt.abort();
      const resumed = before ? this.#live === before : this.#lastId !== null;
      this.#live = attempt;
      setTimeout(() => {
        before?.abort();
        if (this.#handed === handed) this.#handed = null;
      }, OVERLAP);
      this.#wait = FIRST_WAIT;
      this.handlers.connected(resumed);
      listen();
      await this.#read(response, listen);
      throw new Error("the connection ended");
    } catch (error) {
      if (!superseded()) this.handlers.disconnected(error instanceof Error ? error.message : String(error));
    } finally {
      if (this.#live === attempt) this.#live = null;
      clearTimeout(silence);
    }
  }

  /**
   * @param {AbortSignal} signal
   * @param {string | null} after the event after which to go on
   */
  async #ask(signal, after) {
    const query = new URLSearchParams(this.#signals.map((name) => ["signals", name]));
    /** @type {Record<string, string>} */
    const headers = { Accept: "text/event-stream" };
    if (after !== null) headers["Last-Event-ID"] = after;
    const response = await authorizedFetch(`/stream?${query}`, { headers, signal, cache: "no-store" });
    if (!response.ok || !response.body) throw new Error(`the monitor answered ${response.status}`);
    return response.body;
  }

  /**
   * @param {ReadableStream<Uint8Array>} body
   * @param {() => void} heard called for every piece
   */
  async #read(body, heard) {
    const parser = new EventStreamParser();
    const decoder = new TextDecoder();
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      const events = parser.feed(decoder.decode(value, { stream: true }));
      this.#lastId = parser.lastId ?? this.#lastId;
      for (const { id, kind, data } of events) {
        if (id !== null && this.#handed?.has(id)) continue;
        if (id !== null) this.#handed?.add(id);
        this.handlers.event(kind, data ? JSON.parse(data) : null);
      }
    }
  }

  /** Wait before the next attempt: longer each time, and not in step with other pages. */
  #pause() {
    const wait = this.#wait * (0.75 + 0.5 * Math.random());
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }
}
