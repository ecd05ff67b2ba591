/** Choosing the time range of charts: by a button, by two times, or back to where one was before zooming. */

import { el } from "./dom.js";
import { LENGTHS, limits } from "./range.js";
import { fromInput, toInput } from "./zone.js";

/** @typedef {import("./range.js").Range} Range */

/**
 * @param {(range: Range) => void} choose
 * @param {() => void} zoomOut
 */
export function rangeBar(choose, zoomOut) {
  const buttons = Object.keys(LENGTHS).map((last) =>
    el("button", { type: "button", "data-range": last, onclick: () => choose({ last }) }, last),
  );
  const time = (/** @type {string} */ label) =>
    el("input", { type: "datetime-local", step: 1, required: true, "aria-label": label });
  const [from, to] = [time("Range from"), time("Range to")];

  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    const wanted = { from: fromInput(from.value), to: fromInput(to.value) };
    to.setCustomValidity(wanted.from < wanted.to ? "" : "The end must be after the start.");
    if (to.reportValidity()) choose(wanted);
  }
  to.addEventListener("input", () => to.setCustomValidity(""));

  return {
    element: el(
      "div",
      { class: "bar range" },
      el("div", { class: "filters", role: "group", "aria-label": "Time range" }, ...buttons),
      el("button", { type: "button", onclick: zoomOut }, "Zoom out"),
      el("form", { class: "bar stretch", onsubmit: submit }, from, "to", to, el("button", { type: "submit" }, "Show")),
    ),
    /**
     * @param {Range} range
     * @param {number} newest when the newest observation was, in milliseconds since 1970
     */
    show(range, newest) {
      for (const button of buttons)
        button.setAttribute("aria-pressed", String("last" in range && button.dataset.range === range.last));
      const { from: start, to: end } = limits(range, newest);
      from.value = start === null ? "" : toInput(start);
      to.value = start === null ? "" : toInput(end ?? newest);
    },
  };
}
