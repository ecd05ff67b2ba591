/** What is drawn around the lines of a chart: shaded spans, alarms, a level. */

import { colour } from "../theme.js";

/** @typedef {import("../../vendor/uplot/uPlot.esm.js").default} Plot */
/**
 * Seconds since 1970. A stretch is an incident that no single observation shows.
 * @typedef {{from: number, to: number, kind: "incident" | "stretch" | "maintenance" | "silence"}} Span
 */

/** @type {Record<Span["kind"], string>} */
const FILLS = {
  incident: "--span-incident",
  stretch: "--span-incident",
  maintenance: "--span-maintenance",
  silence: "--span-silence",
};
/** So that one observation can be seen too. */
const LEAST_WIDTH = 3;

/**
 * A plugin that shades spans behind the lines.
 * @param {() => Span[]} spans
 */
export function shaded(spans) {
  /** @param {any} plot */
  function draw(plot) {
    const { left, top, width, height } = plot.bbox;
    for (const { from, to, kind } of spans()) {
      const start = Math.max(left, plot.valToPos(from, "x", true));
      const end = Math.min(left + width, plot.valToPos(to, "x", true));
      if (end < left || start > left + width) continue;
      plot.ctx.fillStyle = colour(FILLS[kind]);
      const long = Math.max(end - start, 0) + LEAST_WIDTH;
      plot.ctx.fillRect(start - LEAST_WIDTH / 2, top, long, height);
      if (kind !== "stretch") continue;
      plot.ctx.fillStyle = colour("--alarm");
      plot.ctx.fillRect(start - LEAST_WIDTH / 2, top, long, 4 * devicePixelRatio);
    }
  }
  return { hooks: { drawClear: draw } };
}

/**
 * A plugin that marks alarms by triangles, but for those of a stretch, which has a bar from its first to its last.
 * @param {number} series which line they are on
 * @param {() => boolean[]} alarms
 * @param {() => Span[]} spans
 */
export function alarmMarks(series, alarms, spans) {
  /** @param {any} plot */
  function draw(plot) {
    const [times, line] = [plot.data[0], plot.data[series]];
    const size = 4.5 * devicePixelRatio;
    const stretches = spans().filter(({ kind }) => kind === "stretch");
    plot.ctx.save();
    plot.ctx.fillStyle = colour("--alarm");
    alarms().forEach((alarm, at) => {
      if (!alarm || line[at] === null || times[at] < plot.scales.x.min || times[at] > plot.scales.x.max) return;
      if (stretches.some(({ from, to }) => from <= times[at] && times[at] <= to)) return;
      const [x, y] = [plot.valToPos(times[at], "x", true), plot.valToPos(line[at], "y", true)];
      plot.ctx.beginPath();
      plot.ctx.moveTo(x, y - size);
      plot.ctx.lineTo(x + size, y + size);
      plot.ctx.lineTo(x - size, y + size);
      plot.ctx.fill();
    });
    plot.ctx.restore();
  }
  return { hooks: { draw } };
}

/**
 * A plugin that draws a dashed line at a level, with its name.
 * @param {number} level
 * @param {string} name
 * @param {string} variable its colour
 * @param {"above" | "below"} where the name is
 */
export function levelLine(level, name, variable, where) {
  /** @param {any} plot */
  function draw(plot) {
    const { left, width } = plot.bbox;
    const y = plot.valToPos(level, "y", true);
    const { ctx } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour(variable);
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(left, y);
    ctx.lineTo(left + width, y);
    ctx.stroke();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = where === "below" ? "top" : "bottom";
    ctx.fillText(name, left + width - 4 * devicePixelRatio, y + (where === "below" ? 3 : -3) * devicePixelRatio);
    ctx.restore();
  }
  return { hooks: { draw } };
}
