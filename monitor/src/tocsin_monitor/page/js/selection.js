/** Which signals are selected, among those that are shown. */

import { isIn } from "./tree.js";

export class Selection {
  /** @type {Set<string>} */
  #names = new Set();
  /** @type {string[]} */
  #shown = [];

  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
  }

  /**
   * What can be selected: what is no longer shown is selected no more, or one would change what one does not see.
   * @param {string[]} names
   */
  show(names) {
    this.#shown = names;
    if (!this.#names.size) return;
    const there = new Set(names);
    for (const name of this.#names) if (!there.has(name)) this.#names.delete(name);
  }

  /** The selected ones, or all that are shown where none is. */
  get chosen() {
    return this.#names.size ? this.#shown.filter((name) => this.#names.has(name)) : this.#shown;
  }

  get size() {
    return this.#names.size;
  }

  /** @param {string} name */
  has(name) {
    return this.#names.has(name);
  }

  /** @param {string} path */
  hasLevel(path) {
    const within = this.#shown.filter((name) => isIn(name, path));
    return this.#names.size > 0 && within.length > 0 && within.every((name) => this.#names.has(name));
  }

  /** @param {string} name @param {boolean} on */
  set(name, on) {
    if (on) this.#names.add(name);
    else this.#names.delete(name);
    this.changed();
  }

  /** @param {string} path @param {boolean} on */
  setLevel(path, on) {
    for (const name of this.#shown) {
      if (!isIn(name, path)) continue;
      if (on) this.#names.add(name);
      else this.#names.delete(name);
    }
    this.changed();
  }

  clear() {
    this.#names.clear();
    this.changed();
  }
}
