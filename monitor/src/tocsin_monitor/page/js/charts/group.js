/** The charts of a signal: one for each feature and one for p, which zoom and point together. */

import { el, nameOf } from "../dom.js";
import { number, pValue, time } from "../format.js";
import { themeChanges } from "../theme.js";
import { keepWidth } from "./parts.js";
import { pChart } from "./p_chart.js";
import { valueChart, valueData } from "./value_chart.js";

/** @typedef {import("../columns.js").Columns} Columns */
/** @typedef {import("../types.js").Signal} Signal */

/**
 * Is told of a stretch that was dragged over, in seconds, and of a double click.
 * @typedef {{chosen: (from: number, to: number) => void, out: () => void}} Zooming
 */
/** @typedef {{from: number, to: number}} Sight what is in sight, in seconds */

/** More charts are drawn when asked for. */
const FIRST_FEATURES = 6;
const LEAST_TIME_BETWEEN_DRAWINGS = 200;
const HINT = "drag to zoom in, double-click to zoom out";
let groups = 0;

export class ChartGroup {
  /** @type {any[]} */
  #plots = [];
  /** @type {(() => void)[]} */
  #cleanups = [];
  /** @type {HTMLElement[]} */
  #readouts = [];
  #waiting = 0;
  #told = false;
  #shown = FIRST_FEATURES;
  /** @type {number[]} The numbers of the features as their charts come. */
  #order;
  /** @type {Columns} */
  #columns;
  /** @type {import("./marks.js").Span[]} */
  #spans = [];
  /** All there was when all was shown last: the columns themselves have grown since. */
  #drawn = { from: Infinity, to: -Infinity };
  /** @type {Sight | null} What is to be seen where that is not just all there is. */
  #sight = null;
  #key = `group-${(groups += 1)}`;

  /**
   * @param {Signal} signal
   * @param {Columns} columns
   * @param {Zooming} [zooming] whoever fetches what is to be seen; without it, zooming shows less of what is there
   * @param {string[]} [first] the features to draw first
   */
  constructor(signal, columns, zooming, first = []) {
    this.signal = signal;
    this.zooming = zooming;
    const { features } = signal;
    this.#order = [...new Set([...first.filter((one) => features.includes(one)), ...features])].map((one) => features.indexOf(one));
    this.#columns = columns;
    this.element = el("div", { class: "charts" });
    this.rebuild = this.rebuild.bind(this);
    themeChanges.addEventListener("change", this.rebuild);
  }

  /** Draw; call it once the element is in the page. */
  rebuild() {
    this.#clear();
    const features = this.#order.slice(0, this.#shown).map((feature) => this.signal.features[feature]);
    const hooks = {
      setCursor: [(/** @type {any} */ plot) => this.#read(plot.cursor.idx)],
      setSelect: [(/** @type {any} */ plot) => this.#choose(plot)],
    };
    const cursor = {
      sync: { key: this.#key },
      drag: { x: true, y: false },
      points: { size: 7 },
      bind: { dblclick: () => () => void this.zoomOut() },
    };
    const alarms = () => this.#columns.alarm;
    const spans = () => this.#spans;
    features.forEach((feature) => {
      const { features, unit } = this.signal;
      const title = nameOf(features.length > 1 ? feature : unit ? `value [${unit}]` : "value");
      const box = this.#box(title, `Values of ${feature} with forecast and band`);
      this.#keep(valueChart(box, features.length > 1 ? 160 : 240, alarms, spans, cursor, hooks), box);
    });
    const hidden = this.signal.features.length - features.length;
    if (hidden > 0)
      this.element.append(
        el("button", { type: "button", onclick: () => this.#showAll() }, `Show ${hidden} more features`),
      );
    const box = this.#box("p", "p of each observation, on a log scale");
    this.#keep(pChart(box, this.signal, alarms, spans, cursor, hooks), box);
    this.#draw(true);
  }

  /** @param {any} plot @param {HTMLElement} box */
  #keep(plot, box) {
    this.#plots.push(plot);
    this.#cleanups.push(keepWidth(plot, box), () => plot.destroy());
  }

  #showAll() {
    this.#shown = this.signal.features.length;
    this.rebuild();
  }

  /**
   * @param {import("../dom.js").Child} title
   * @param {string} label
   */
  #box(title, label) {
    const readout = el("span", { class: "readout" });
    const box = el("div", { class: "chart", role: "img", "aria-label": label });
    const hint = this.#readouts.length === 0 && el("span", { class: "muted hint" }, HINT);
    this.element.append(el("figure", {}, el("figcaption", {}, el("strong", {}, title), readout, hint), box));
    this.#readouts.push(readout);
    return box;
  }

  /**
   * New data; drawn soon, and where the viewer has zoomed the sight stays.
   * @param {Columns} columns
   * @param {import("./marks.js").Span[]} spans
   * @param {Sight | null} [sight]
   */
  update(columns, spans, sight = null) {
    this.#columns = columns;
    this.#spans = spans;
    this.#sight = sight;
    if (this.#waiting) return;
    this.#waiting = setTimeout(() => {
      this.#waiting = 0;
      this.#draw(sight !== null || !this.zoomed);
    }, LEAST_TIME_BETWEEN_DRAWINGS);
  }

  get zoomed() {
    const { min, max } = this.#plots[0]?.scales.x ?? {};
    return min > this.#drawn.from || max < this.#drawn.to;
  }

  zoomOut() {
    if (this.zooming) this.zooming.out();
    else this.#draw(true);
  }

  /** @param {boolean} whole whether to show all there is */
  #draw(whole) {
    const { times } = this.#columns;
    if (whole) this.#drawn = this.#sight ?? { from: times[0], to: times[times.length - 1] };
    this.#plots.forEach((plot, at) => {
      const isLast = at === this.#plots.length - 1;
      const reset = whole && this.#sight === null;
      plot.setData(isLast ? [this.#columns.times, this.#columns.p] : valueData(this.#columns, this.#order[at]), reset);
      if (this.#sight && whole) plot.setScale("x", { min: this.#sight.from, max: this.#sight.to });
      else if (!reset) plot.redraw();
    });
    this.#read(null);
  }

  /**
   * Say in words what is under the pointer, or what is newest.
   * @param {number | null | undefined} pointed
   */
  #read(pointed) {
    const { times, value, forecast, low, high, p, alarm } = this.#columns;
    const at = pointed ?? times.length - 1;
    this.#readouts.forEach((readout, chart) => {
      if (at < 0) return readout.replaceChildren("no observations yet");
      if (chart === this.#readouts.length - 1) {
        return readout.replaceChildren(
          part("p", pValue(p[at])),
          alarm[at] ? part("alarm", "alarm") : "",
          `at ${time(times[at] * 1000)}`,
        );
      }
      const feature = this.#order[chart];
      readout.replaceChildren(
        part("value", `${number(value[feature][at])}${this.signal.unit ? ` ${this.signal.unit}` : ""}`),
        part("forecast", `forecast ${number(forecast[feature][at])}`),
        // There is no band while the detector learns, nor where nothing was judged.
        low[feature][at] === null || high[feature][at] === null
          ? ""
          : part("band", `band ${number(low[feature][at])} to ${number(high[feature][at])}`),
        chart === 0 ? `at ${time(times[at] * 1000)}` : "",
      );
    });
  }

  /** @param {any} plot */
  #choose(plot) {
    const { left, width } = plot.select;
    // The other charts zoom along at once, and would tell of the same stretch.
    if (width <= 0 || this.#told) return;
    this.#told = true;
    queueMicrotask(() => (this.#told = false));
    this.zooming?.chosen(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
  }

  #clear() {
    for (const cleanup of this.#cleanups) cleanup();
    this.#cleanups = [];
    this.#plots = [];
    this.#readouts = [];
    this.element.replaceChildren();
  }

  close() {
    clearTimeout(this.#waiting);
    themeChanges.removeEventListener("change", this.rebuild);
    this.#clear();
  }
}

/** @param {string} kind @param {string} text */
function part(kind, text) {
  return el("span", { class: `key ${kind}` }, text);
}
