/**
 * p on a log scale, with the alarm rate as a line if alarms are the values below it. Dots, since neighbours have nothing
 * to do with each other.
 */

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { pValue } from "../format.js";
import { colour } from "../theme.js";
import { alarmMarks, levelLine, shaded } from "./marks.js";
import { leftAxis, timeAxis, zoned } from "./parts.js";

/**
 * @param {HTMLElement} box
 * @param {import("../types.js").Signal} signal
 * @param {() => boolean[]} alarms
 * @param {() => import("./marks.js").Span[]} spans
 * @param {object} cursor
 * @param {object} hooks
 */
export function pChart(box, { alarm_rate: alarmRate, promise }, alarms, spans, cursor, hooks) {
  const level = levelLine(alarmRate ?? NaN, `alarm rate ${pValue(alarmRate)}`, "--alarm", "below");
  const dots = { show: true, size: 3, fill: colour("--value"), width: 0, stroke: "transparent" };
  return new uPlot(
    {
      width: box.clientWidth || 300,
      height: 150,
      legend: { show: false },
      tzDate: zoned,
      cursor,
      hooks,
      scales: {
        y: {
          distr: 3,
          range: (/** @type {any} */ _, /** @type {number} */ least) => [decadeBelow(least, alarmRate), 1.3],
        },
      },
      series: [{}, { label: "p", stroke: colour("--value"), paths: () => null, points: dots }],
      axes: [timeAxis(), decadeAxis()],
      plugins: [shaded(spans), alarmMarks(1, alarms, spans), ...(promise === "observations" ? [level] : [])],
    },
    undefined,
    box,
  );
}

/** An axis with a line for each power of ten, and none in between. */
function decadeAxis() {
  const filter = (/** @type {any} */ _, /** @type {number[]} */ at) =>
    at.map((value) => (Number.isInteger(Math.round(1e6 * Math.log10(value)) / 1e6) ? value : null));
  const values = (/** @type {any} */ _, /** @type {(number | null)[]} */ at) =>
    at.map((value) => (value === null ? "" : pValue(value).replace(".0e", "e")));
  const axis = leftAxis();
  return { ...axis, filter, values, grid: { ...axis.grid, filter }, ticks: { ...axis.ticks, filter } };
}

/**
 * @param {number | null} least the smallest p
 * @param {number | null} alarmRate
 */
function decadeBelow(least, alarmRate) {
  return 10 ** Math.floor(Math.log10(Math.min(least || 1, alarmRate ?? 1) * 0.99));
}
