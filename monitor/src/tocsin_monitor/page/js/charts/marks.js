/** What is drawn around the lines of a chart: spans, alarms, a level. */

import { colour } from "../theme.js";

/** @typedef {import("../../vendor/uplot/uPlot.esm.js")} Plot */
/**
 * Seconds since 1970. A stretch is an incident that no single observation shows. An onset is the time in which one that
 * was noticed late began.
 * @typedef {{from: number, to: number, kind: "incident" | "stretch" | "onset" | "maintenance" | "silence" | "reference"}} Span
 */

/** @type {Record<Span["kind"], string>} */
const FILLS = {
  incident: "--span-incident",
  stretch: "--span-incident",
  onset: "--span-onset",
  maintenance: "--span-maintenance",
  silence: "--span-silence",
  reference: "--span-reference",
};
/** So that one observation can be seen too. */
const LEAST_WIDTH = 3;

/**
 * A plugin that shades spans behind the lines. Above the lines, a stretch has a bar, and a reference its name.
 * @param {() => Span[]} spans
 */
export function shaded(spans) {
  /** @param {any} plot */
  function inSight(plot) {
    const { left, width } = plot.bbox;
    return spans().flatMap(({ from, to, kind }) => {
      const start = Math.max(left, plot.valToPos(from, "x", true));
      const end = Math.min(left + width, plot.valToPos(to, "x", true));
      if (end < left || start > left + width) return [];
      return [{ kind, start: start - LEAST_WIDTH / 2, long: Math.max(end - start, 0) + LEAST_WIDTH }];
    });
  }
  /** @param {any} plot */
  function shade(plot) {
    for (const { kind, start, long } of inSight(plot)) {
      plot.ctx.fillStyle = colour(FILLS[kind]);
      plot.ctx.fillRect(start, plot.bbox.top, long, plot.bbox.height);
    }
  }
  /** @param {any} plot */
  function mark(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    for (const { kind, start, long } of inSight(plot)) {
      if (kind === "stretch") {
        ctx.fillStyle = colour("--alarm");
        ctx.fillRect(start, bbox.top, long, 4 * devicePixelRatio);
      } else if (kind === "reference") {
        ctx.fillStyle = colour("--fine");
        ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
        ctx.textAlign = "left";
        ctx.textBaseline = "bottom";
        ctx.fillText("reference", start + 4 * devicePixelRatio, bbox.top + bbox.height - 3 * devicePixelRatio);
      }
    }
    ctx.restore();
  }
  return { hooks: { drawClear: shade, draw: mark } };
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
