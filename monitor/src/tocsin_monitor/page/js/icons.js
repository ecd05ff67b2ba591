/** Small pictures that go with words, so that colour is never all there is. */

import { svg } from "./dom.js";

/** @type {Record<string, string>} */
const SHAPES = {
  quarantined: "M3 3l10 10 M13 3 3 13",
  incident: "M8 1.8 15 14.2H1Z M8 6v4 M8 12v.2",
  silent: "M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12 M3.8 3.8l8.4 8.4",
  maintenance: "M10.5 2.2a3.6 3.6 0 0 0-3.2 5L2.2 12.3l1.5 1.5 5.1-5.1a3.6 3.6 0 0 0 5-4.7l-2.3 2.3-2-.6-.6-2Z",
  learning: "M8 2a6 6 0 1 0 6 6 M8 4.5V8l2.5 2",
  fine: "M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12 M5.2 8.2l2 2 3.6-4",
  above: "M8 14V3 M3.5 7.5 8 3l4.5 4.5",
  below: "M8 2v11 M3.5 8.5 8 13l4.5-4.5",
};

/** @param {string} name one of the shapes */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: SHAPES[name] }));
}
