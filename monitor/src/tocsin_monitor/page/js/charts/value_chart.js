/** One feature's values, forecasts and the band in which nothing is strange. */

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { colour } from "../theme.js";
import { alarmMarks, shaded } from "./marks.js";
import { leftAxis, timeAxis, zoned } from "./parts.js";

/** @typedef {import("../columns.js").Columns} Columns */

/**
 * @param {HTMLElement} box
 * @param {number} height
 * @param {() => boolean[]} alarms
 * @param {() => import("./marks.js").Span[]} spans
 * @param {object} cursor
 * @param {object} hooks
 */
export function valueChart(box, height, alarms, spans, cursor, hooks) {
  const none = { points: { show: false }, width: 0 };
  return new uPlot(
    {
      width: box.clientWidth || 300,
      height,
      legend: { show: false },
      tzDate: zoned,
      cursor,
      hooks,
      series: [
        {},
        { label: "high", ...none },
        { label: "low", ...none },
        { label: "forecast", stroke: colour("--forecast"), width: 1.25, dash: [5, 3], points: { show: false } },
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
