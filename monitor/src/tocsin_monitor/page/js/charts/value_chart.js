/**
 * One feature's values, forecasts and the band in which nothing is strange. The values set the scale: a band that is far
 * wider, as while a detector learns, would leave them a flat line. What is beyond is cut off at the edge.
 */

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { colour } from "../theme.js";
import { alarmMarks, shaded } from "./marks.js";
import { leftAxis, timeAxis, zoned } from "./parts.js";

/** @typedef {import("../columns.js").Columns} Columns */

/** Room above and below the values, as a share of their spread; of a constant, as a share of its size. */
const ROOM = 0.1;
/** A smaller spread, as a share of the size of the values, is rounding: it is shown as a constant. */
const LEAST_SPREAD = 1e-9;

/**
 * @param {HTMLElement} box
 * @param {number} height
 * @param {() => boolean[]} alarms
 * @param {() => import("./marks.js").Span[]} spans
 * @param {object} cursor
 * @param {object} hooks
 */
export function valueChart(box, height, alarms, spans, cursor, hooks) {
  const none = { points: { show: false }, width: 0, auto: false };
  return new uPlot(
    {
      width: box.clientWidth || 300,
      height,
      legend: { show: false },
      tzDate: zoned,
      cursor,
      hooks,
      scales: { y: { range: aroundValues } },
      series: [
        {},
        { label: "high", ...none },
        { label: "low", ...none },
        { label: "forecast", stroke: colour("--forecast"), width: 1.25, dash: [5, 3], points: { show: false }, auto: false },
        { label: "value", stroke: colour("--value"), width: 1.5 },
      ],
      bands: [{ series: [1, 2], fill: colour("--band") }],
      axes: [timeAxis(), leftAxis()],
      plugins: [shaded(spans), alarmMarks(4, alarms, spans)],
    },
    undefined,
    box,
  );
}

/**
 * From where to where the axis of values goes; null where there are none.
 * @param {any} _ the chart
 * @param {number | null} low the smallest value in sight
 * @param {number | null} high the largest
 * @returns {[number | null, number | null]}
 */
export function aroundValues(_, low, high) {
  if (low === null || high === null) return [null, null];
  const size = Math.max(Math.abs(low), Math.abs(high));
  const spread = high - low > LEAST_SPREAD * size ? high - low : size || 1;
  return [low - ROOM * spread, high + ROOM * spread];
}

/**
 * @param {Columns} columns
 * @param {number} feature
 */
export function valueData(columns, feature) {
  return [
    columns.times,
    columns.high[feature],
    columns.low[feature],
    columns.forecast[feature],
    columns.value[feature],
  ];
}
