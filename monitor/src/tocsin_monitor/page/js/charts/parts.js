/** What all charts have in common. */

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { number } from "../format.js";
import { colour } from "../theme.js";
import { isUtc } from "../zone.js";

const AXIS_WIDTH = 62;

/**
 * The moment as uPlot writes it in the page's zone.
 * @param {number} seconds since 1970
 */
export function zoned(seconds) {
  const date = new Date(seconds * 1000);
  return isUtc() ? uPlot.tzDate(date, "Etc/UTC") : date;
}

/**
 * An axis in the theme's colours.
 * @param {object} more
 */
export function axis(more = {}) {
  const line = { stroke: colour("--line"), width: 1 };
  return { stroke: colour("--muted"), grid: line, ticks: line, font: "11px system-ui, sans-serif", ...more };
}

/** The axis on the left: of one width, so that charts above each other line up. */
export function leftAxis() {
  return axis({ size: AXIS_WIDTH, values: axisLabels });
}

/**
 * Numbers with as many decimals as tell them apart: 1013.2 and 1013.3 are not both 1,013.
 * @param {any} _plot
 * @param {(number | null)[]} at
 * @param {number} [_axis]
 * @param {number} [_space]
 * @param {number} [step] from one to the next
 */
export function axisLabels(_plot, at, _axis, _space, step = 0) {
  const largest = Math.max(...at.map((value) => Math.abs(value ?? 0)));
  const close = step > 0 && step < largest / 1000;
  let digits = 0;
  while (close && digits < 12 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return at.map((value) => (value === null ? "" : close ? value.toFixed(digits) : number(value)));
}

/** Days and hours as in the rest of the page. */
export function timeAxis() {
  const day = "{YYYY}-{MM}-{DD}";
  return axis({
    space: 80,
    values: [
      [86400 * 365, "{YYYY}", null, null, null, null, null, null, 1],
      [86400 * 28, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
      [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
      [60, "{HH}:{mm}", `\n${day}`, null, "\n{MM}-{DD}", null, null, null, 1],
      [1, "{HH}:{mm}:{ss}", `\n${day}`, null, "\n{MM}-{DD}", null, null, null, 1],
      [0.001, ":{ss}.{fff}", `\n${day} {HH}:{mm}`, null, "\n{MM}-{DD} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
    ],
  });
}

/** Draw a chart as wide as what it is in.
 * @param {any} plot
 * @param {HTMLElement} box
 */
export function keepWidth(plot, box) {
  const observer = new ResizeObserver(() => {
    const width = box.clientWidth;
    if (width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
  });
  observer.observe(box);
  return () => observer.disconnect();
}
