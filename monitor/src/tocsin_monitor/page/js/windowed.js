/** A long list of which only the rows in sight exist. Rows are as high as the style's --row-height says. */

import { el } from "./dom.js";

/** What of a row gets the focus: what opens it. */
const FOCUSED = "a, button";

/** Milliseconds after which pictures are drawn: the words of all rows come first. */
const PAINT_AFTER = 40;

/** Rows above and below those in sight. */
const SPARE = 5;

/**
 * @template Item
 * @typedef {object} RowKind
 * @property {(item: Item) => string} key
 * @property {(item: Item) => HTMLElement} make
 * @property {(row: HTMLElement, item: Item) => void} update must not ask for sizes
 * @property {(rows: [HTMLElement, Item][]) => void} paint what needs sizes, soon after all rows are in their place
 */

/** @template Item */
export class WindowedList {
  /** @type {Item[]} */
  #items = [];
  /** @type {Map<string, HTMLElement>} */
  #rows = new Map();
  #rowHeight = 44;
  #painting = 0;

  /** @param {RowKind<Item>} kind @param {string} label */
  constructor(kind, label) {
    this.kind = kind;
    this.element = el("div", { class: "windowed", role: "list", "aria-label": label });
    this.draw = this.draw.bind(this);
    addEventListener("scroll", this.draw, { passive: true });
    addEventListener("resize", this.draw);
  }

  close() {
    clearTimeout(this.#painting);
    removeEventListener("scroll", this.draw);
    removeEventListener("resize", this.draw);
  }

  /** @param {Item[]} items */
  show(items) {
    this.#items = items;
    this.draw();
  }

  /** Make, move and update the rows in sight; the others go. */
  draw() {
    this.#rowHeight = parseFloat(getComputedStyle(this.element).getPropertyValue("--row-height")) || this.#rowHeight;
    this.element.style.height = `${this.#items.length * this.#rowHeight}px`;
    const top = -this.element.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / this.#rowHeight) - SPARE);
    const last = Math.min(this.#items.length, Math.ceil((top + innerHeight) / this.#rowHeight) + SPARE);
    const gone = new Map(this.#rows);
    /** @type {[HTMLElement, Item][]} */
    const placed = [];
    for (let at = first; at < last; at++) {
      const key = this.#place(at);
      gone.delete(key);
      placed.push([/** @type {HTMLElement} */ (this.#rows.get(key)), this.#items[at]]);
    }
    for (const [key, row] of gone) {
      // The row with the focus stays, wherever it is: without it the keyboard would lose its place.
      if (row.contains(document.activeElement)) continue;
      row.remove();
      this.#rows.delete(key);
    }
    clearTimeout(this.#painting);
    this.#painting = setTimeout(() => this.kind.paint(placed), PAINT_AFTER);
  }

  /** @param {number} at @returns {string} the row's key */
  #place(at) {
    const item = this.#items[at];
    const key = this.kind.key(item);
    let row = this.#rows.get(key);
    if (!row) {
      row = this.kind.make(item);
      row.setAttribute("role", "listitem");
      this.#rows.set(key, row);
      this.element.append(row);
    }
    row.style.transform = `translateY(${at * this.#rowHeight}px)`;
    row.setAttribute("aria-posinset", String(at + 1));
    row.setAttribute("aria-setsize", String(this.#items.length));
    this.kind.update(row, item);
    return key;
  }

  /** Which row has the focus; -1 for none. */
  get focused() {
    const focused = [...this.#rows].find(([, row]) => row.contains(document.activeElement))?.[0];
    return this.#items.findIndex((item) => this.kind.key(item) === focused);
  }

  /** @param {number} step */
  moveFocus(step) {
    const at = this.focused;
    if (this.#items.length) this.focus(at < 0 ? 0 : Math.max(0, Math.min(this.#items.length - 1, at + step)));
  }

  /** @param {number} at */
  focus(at) {
    const key = this.#place(at);
    const row = /** @type {HTMLElement} */ (this.#rows.get(key));
    /** @type {HTMLElement | null} */ (row.querySelector(FOCUSED))?.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
    this.draw();
  }
}
