/** Reading text/event-stream, piece by piece. */

/** @typedef {{id: string | null, kind: string, data: string}} ServerEvent */

/** Takes text in pieces of any size and gives the events that are complete. */
export class EventStreamParser {
  #rest = "";
  #kind = "";
  /** @type {string[]} */
  #data = [];
  /** @type {string | null} The newest id that was sent, with an event or alone. */
  lastId = null;

  /**
   * @param {string} text
   * @returns {ServerEvent[]}
   */
  feed(text) {
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    // The last line may go on in the next piece, and a carriage return at the end may be half of a line's end.
    this.#rest = lines.pop() ?? "";
    return lines.map((line) => this.#take(line)).filter((event) => event !== null);
  }

  /**
   * @param {string} line
   * @returns {ServerEvent | null}
   */
  #take(line) {
    if (line === "") return this.#finish();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#kind = value;
    else if (field === "id" && !value.includes("\0")) this.lastId = value;
    return null;
  }

  /** @returns {ServerEvent | null} */
  #finish() {
    const event = this.#data.length ? { id: this.lastId, kind: this.#kind || "message", data: this.#data.join("\n") } : null;
    this.#data = [];
    this.#kind = "";
    return event;
  }
}
