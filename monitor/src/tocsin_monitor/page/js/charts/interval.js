/** The audit as a picture: where the true alarm rate may lie, the rate seen, the rate promised; on a log scale. */

import { svg } from "../dom.js";
import { odds } from "../rates.js";

const [WIDTH, HEIGHT, MARGIN] = [360, 64, 14];

/** @param {import("../types.js").Audit} audit */
export function intervalPlot({ promised, rate, low, high }) {
  const bounds = [promised, rate, low, high].map((value) => value ?? 0).filter((value) => value > 0);
  const least = Math.log10(Math.min(...bounds, promised / 3));
  const most = Math.log10(Math.max(...bounds, promised * 3));
  const x = (/** @type {number | null} */ value) =>
    MARGIN + ((WIDTH - 2 * MARGIN) * (Math.log10(Math.max(value ?? 0, 10 ** least)) - least)) / (most - least);
  const anchor = x(promised) < WIDTH / 4 ? "start" : x(promised) > (3 * WIDTH) / 4 ? "end" : "middle";
  const band = low !== null &&
    high !== null &&
    rate !== null && [
      svg("line", { class: "band", x1: x(low), x2: x(high), y1: 24, y2: 24 }),
      svg("line", { class: "end", x1: x(low), x2: x(low), y1: 17, y2: 31 }),
      svg("line", { class: "end", x1: x(high), x2: x(high), y1: 17, y2: 31 }),
      svg("circle", { class: "seen", cx: x(rate), cy: 24, r: 5 }),
    ];
  return svg(
    "svg",
    { class: "interval", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Promised and seen alarm rate" },
    svg("line", { class: "base", x1: MARGIN, x2: WIDTH - MARGIN, y1: 24, y2: 24 }),
    band,
    svg("line", { class: "promised", x1: x(promised), x2: x(promised), y1: 8, y2: 40 }),
    svg("text", { x: x(promised), y: 56, "text-anchor": anchor }, `promised ${odds(promised)}`),
  );
}
