/** The newest values as a small line without axes, alarms as dots. */

import { colour } from "../theme.js";

const MARGIN = 3;

/**
 * @param {HTMLCanvasElement} canvas
 * @param {import("../types.js").Recent[]} recent
 * @param {number} width
 * @param {number} height
 */
export function drawSparkline(canvas, recent, width, height) {
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const known = recent.map(([, value]) => value).filter((value) => value !== null);
  const low = Math.min(...known);
  const spread = Math.max(...known) - low;
  const x = (/** @type {number} */ at) => MARGIN + ((width - 2 * MARGIN) * at) / Math.max(1, recent.length - 1);
  const y = (/** @type {number} */ value) =>
    spread > 0 ? height - MARGIN - ((height - 2 * MARGIN) * (value - low)) / spread : height / 2;
  context.beginPath();
  let gap = true;
  recent.forEach(([, value], at) => {
    if (value !== null) context[gap ? "moveTo" : "lineTo"](x(at), y(value));
    gap = value === null;
  });
  context.lineWidth = 1.25;
  context.strokeStyle = colour("--value");
  context.stroke();
  context.fillStyle = colour("--alarm");
  recent.forEach(([, value, , alarm], at) => {
    if (!alarm || value === null) return;
    context.beginPath();
    context.arc(x(at), y(value), 2.5, 0, 2 * Math.PI);
    context.fill();
  });
}
