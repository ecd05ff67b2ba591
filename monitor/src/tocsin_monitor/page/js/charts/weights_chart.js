/** How much past errors count, by how long ago they were. */

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { el, nameOf } from "../dom.js";
import { colour, themeChanges } from "../theme.js";
import { levelLine } from "./marks.js";
import { axis, keepWidth, leftAxis } from "./parts.js";

const LINES = ["--value", "--forecast", "--fine", "--silent", "--learning"];

/**
 * Weights as shares of their sum, up to the oldest lag that has one.
 * @param {(number | null)[]} weights
 */
function shareOf(weights) {
  const sum = weights.reduce((/** @type {number} */ total, weight) => total + (weight ?? 0), 0) || 1;
  const oldest = weights.findLastIndex((weight) => weight !== null && weight > 0);
  return weights.slice(0, oldest + 1).map((weight) => (weight ?? 0) / sum);
}

/**
 * Which line is which feature's.
 * @param {string[]} features
 */
export function weightsLegend(features) {
  if (features.length < 2) return null;
  return el("p", { class: "readout" }, ...features.map((feature, at) => {
    const key = el("span", { class: "key" }, nameOf(feature));
    key.style.setProperty("--key", `var(${LINES[at % LINES.length]})`);
    return key;
  }));
}

/**
 * @param {(number | null)[][]} weights one row for each feature
 * @returns {{element: HTMLElement, draw: () => void, close: () => void}}
 */
export function weightsChart(weights) {
  const element = el("div", { class: "chart", role: "img", "aria-label": "Learned weights by lag" });
  const shares = weights.map(shareOf);
  const longest = Math.max(1, ...shares.map((row) => row.length));
  const lags = Array.from({ length: longest }, (_, lag) => lag + 1);
  let close = () => {};
  function draw() {
    close();
    const plot = new uPlot(
      {
        width: element.clientWidth || 300,
        height: 170,
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false },
          y: {
            range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, most * 1.1 || 1],
          },
        },
        series: [
          {},
          ...shares.map((_, at) => ({
            stroke: colour(LINES[at % LINES.length]),
            width: 1.5,
            points: { show: false },
          })),
        ],
        axes: [axis({ size: 30, label: "observations ago", labelSize: 18, labelFont: "11px system-ui, sans-serif" }), leftAxis()],
        plugins: [levelLine(1 / longest, "equal weights", "--muted", "above")],
      },
      [lags, ...shares],
      element,
    );
    const stop = keepWidth(plot, element);
    close = () => {
      stop();
      plot.destroy();
    };
  }
  themeChanges.addEventListener("change", draw);
  return {
    element,
    draw,
    close: () => {
      themeChanges.removeEventListener("change", draw);
      close();
    },
  };
}
