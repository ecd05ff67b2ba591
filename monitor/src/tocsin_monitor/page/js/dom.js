/** Elements from plain values. Data only ever becomes text: nothing here parses HTML. */

/** @typedef {Node | string | number | null | undefined | false | Node[] | (Node | string)[]} Child */

/**
 * @param {Element} element
 * @param {Record<string, any>} attributes
 * @param {Child[]} children
 */
function make(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
}

/**
 * @param {Element | DocumentFragment} element
 * @param {Child[]} children
 */
function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * An HTML element. Attributes that begin with "on" are listeners; null, undefined and false leave one out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  make(element, attributes, children);
  return element;
}

/**
 * Put these in the place of what an element holds; null, undefined and false are left out.
 * @param {Element} element
 * @param {Child[]} children
 */
export function fill(element, children) {
  const made = document.createDocumentFragment();
  append(made, children);
  element.replaceChildren(made);
}

/**
 * An SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 */
export function svg(tag, attributes = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", tag));
  make(element, attributes, children);
  return element;
}

/**
 * A signal's or feature's name, kept apart from its surroundings: a name with right-to-left marks must not turn them.
 * @param {string} text
 * @param {string} [className]
 */
export function nameOf(text, className = "name") {
  return el("bdi", { class: className, title: text }, text);
}

/**
 * A row of a definition list.
 * @param {string} term
 * @param {...Child} meaning
 */
export function fact(term, ...meaning) {
  return el("div", { class: "fact" }, el("dt", {}, term), el("dd", {}, ...meaning));
}

/**
 * The element with an id that index.html has.
 * @param {string} id
 */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}
