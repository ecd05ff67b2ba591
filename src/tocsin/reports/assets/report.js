/* The charts of a report. `uPlot` and the data stand before, in the same file. */

const { dated, charts } = JSON.parse(document.getElementById("data").textContent);
const root = document.getElementById("charts");
const colour = (name) => {
  // A canvas knows no light-dark(): an element resolves it.
  root.style.color = `var(--${name})`;
  const found = getComputedStyle(root).color;
  root.style.color = "";
  return found;
};
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const text = (value) => (value == null ? "–" : number.format(value));
const time = (value) =>
  dated ? new Date(value * 1000).toISOString().replace("T", " ").replace(/(:00)?\.000Z$|Z$/, "") : text(value);

/** Days and hours as in the table. */
const DAYS = [
  [86400 * 365, "{YYYY}", null, null, null, null, null, null, 1],
  [86400 * 28, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
  [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [0.001, ":{ss}.{fff}", "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, "\n{MM}-{DD} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
];

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function key(label, name, shape = "line") {
  const made = element("span", { className: `key ${shape}`, textContent: label });
  made.style.setProperty("--colour", `var(--${name})`);
  return made;
}

/** Shades stretches of time behind the curves. */
function shaded(spans, name) {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colour(name);
    for (const [start, end] of spans) {
      if (end < plot.scales.x.min || start > plot.scales.x.max) continue;
      const left = Math.max(plot.valToPos(start, "x", true), bbox.left);
      const right = Math.min(plot.valToPos(end, "x", true), bbox.left + bbox.width);
      // One of a single observation is visible, too.
      ctx.fillRect(left - 1, bbox.top, Math.max(right - left + 2, 3), bbox.height);
    }
    ctx.restore();
  };
}

/** Marks the observations that alarmed. */
function alarms(times, values) {
  return (plot) => {
    const { ctx } = plot;
    const { min, max } = plot.scales.x;
    const shown = times.map((at, i) => [at, values[i]]).filter(([at, value]) => value != null && at >= min && at <= max);
    const radius = (shown.length > 150 ? 1.5 : 3) * devicePixelRatio; // many of them would hide the curve
    ctx.save();
    ctx.fillStyle = colour("alarm");
    for (const [at, value] of shown) {
      ctx.beginPath();
      ctx.arc(plot.valToPos(at, "x", true), plot.valToPos(value, "y", true), radius, 0, 2 * Math.PI);
      ctx.fill();
    }
    ctx.restore();
  };
}

function draw(chart, group, box, readout) {
  const line = { stroke: colour("line"), width: 1 };
  const axis = { stroke: colour("muted"), grid: line, ticks: line, font: "11px system-ui, sans-serif" };
  const hidden = { stroke: null, width: 0, points: { show: false } };
  const curve = (name, more) => ({ stroke: colour(name), width: 1.25, points: { show: false }, ...more });
  const severity = chart.severity != null;
  const data = severity
    ? [chart.time, chart.severity]
    : [chart.time, chart.high, chart.low, chart.usual_high, chart.usual_low, chart.forecast, chart.value];
  const plot = new uPlot(
    {
      width: box.clientWidth || 300,
      height: severity ? 130 : 210,
      legend: { show: false },
      tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "Etc/UTC"),
      cursor: { sync: { key: group.name }, drag: { x: true, y: false } },
      scales: { x: { time: dated }, y: severity ? { range: (_, __, most) => [0, Math.max(most, 1)] } : { range: chart.range } },
      series: severity
        ? [{}, curve("muted")]
        : [{}, hidden, hidden, hidden, hidden, curve("forecast", { dash: [5, 3] }), curve("value", { width: 1.5 })],
      bands: severity
        ? []
        : [
            { series: [1, 2], fill: colour("band") },
            { series: [3, 4], fill: colour("usual") },
          ],
      axes: [
        { ...axis, space: 80, ...(dated ? { values: DAYS } : {}) },
        { ...axis, size: 62, space: severity ? 16 : 30, values: (_, at) => at.map(text) },
      ],
      hooks: {
        drawClear: [shaded(group.warm_up, "warm-up"), shaded(chart.onsets, "onset"), shaded(chart.incidents, "incident")],
        draw: [alarms(chart.alarms[0], chart.alarms[1])],
        setScale: [(one, scale) => scale === "x" && group.zoom(one)],
        setCursor: [
          ({ cursor: { idx } }) => {
            readout.textContent =
              idx == null
                ? ""
                : severity
                  ? `${time(chart.time[idx])}  severity ${text(chart.severity[idx])}`
                  : `${time(chart.time[idx])}  value ${text(chart.value[idx])}  forecast ${text(chart.forecast[idx])}`;
          },
        ],
      },
    },
    data,
    box,
  );
  new ResizeObserver(() => box.clientWidth && plot.setSize({ width: box.clientWidth, height: plot.height })).observe(box);
  return plot;
}

const groups = charts.map((signal) => {
  const group = { name: signal.name, warm_up: signal.warm_up, plots: [], boxes: [], zooming: false };
  group.zoom = (from) => {
    if (group.zooming) return;
    group.zooming = true;
    const { min, max } = from.scales.x;
    for (const other of group.plots) if (other !== from) other.setScale("x", { min, max });
    group.zooming = false;
    figure.dataset.from = min;
    figure.dataset.to = max;
  };
  group.show = (min, max) => group.plots[0].setScale("x", { min, max });
  group.lead = (numbers) => {
    for (const box of numbers.map((number) => group.boxes[number]).reverse())
      figure.firstElementChild.after(box.previousElementSibling, box);
  };
  const whole = element("button", { className: "whole", type: "button", textContent: "Whole signal" });
  whole.addEventListener("click", () => group.show(signal.start, signal.end));
  const figure = element("figure", { id: `signal-${signal.number}` });
  figure.append(
    element(
      "figcaption",
      {},
      element("h3", { textContent: signal.name }),
      key("value", "value"),
      key("forecast", "forecast", "dashed"),
      key("expected range", "band", "area"),
      key("usual range", "usual", "area"),
      signal.charts.some((one) => one.onsets.length > 0) ? key("when it began", "onset", "area") : "",
      key("incident", "incident", "area"),
      key("alarm", "alarm", "dot"),
      key("warm-up", "warm-up", "area"),
      whole,
    ),
  );
  root.append(figure);
  for (const chart of signal.charts) {
    const readout = element("span", { className: "readout" });
    const box = element("div", { className: "chart", role: "img", ariaLabel: `${signal.name}: ${chart.title}` });
    figure.append(element("figcaption", {}, element("span", { textContent: chart.title }), readout), box);
    group.boxes.push(box);
    group.plots.push(draw(chart, group, box, readout));
  }
  group.figure = figure;
  group.again = () => {
    const { boxes } = group;
    const { min, max } = group.plots[0].scales.x;
    group.plots = group.plots.map((plot, i) => {
      plot.destroy();
      return draw(signal.charts[i], group, boxes[i], boxes[i].previousElementSibling.lastChild);
    });
    group.show(min, max);
  };
  return group;
});

document.querySelector("#incidents + .table")?.addEventListener("click", (event) => {
  if (event.target.closest("a, details")) return; // a link, or more of what the row says
  const row = event.target.closest("tr[data-chart]");
  const group = row && groups[Number(row.dataset.chart)];
  if (!group) return;
  group.lead(row.dataset.first?.split(" ") ?? []);
  group.show(Number(row.dataset.from), Number(row.dataset.to));
  group.figure.scrollIntoView({ behavior: "instant", block: "start" });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => groups.forEach((group) => group.again()));
