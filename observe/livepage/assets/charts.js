// Three small charts of the last minutes, drawn by uPlot.
import { el, duration, rate, number } from "./dom.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const defs = [
  {
    title: "Rates", unit: "a second", format: rate,
    series: [
      { label: "events", from: (p) => p.events, colour: "--blue" },
      { label: "reconciles", from: (p) => p.reconciles, colour: "--green" },
      { label: "errors", from: (p) => p.errors, colour: "--red" },
    ],
  },
  {
    title: "Latency", unit: "99th percentile", format: duration, log: true,
    series: [
      { label: "received → stored", from: (p) => p.stored?.p99 ?? null, colour: "--blue" },
      { label: "received → queue", from: (p) => p.added?.p99 ?? null, colour: "--muted" },
      { label: "in the queue", from: (p) => p.waited?.p99 ?? null, colour: "--amber" },
      { label: "reconcile", from: (p) => p.worked?.p99 ?? null, colour: "--green" },
    ],
  },
  {
    title: "Backlog", unit: "waiting now", format: number,
    series: [
      { label: "notifications", from: (p) => p.pending, colour: "--blue" },
      { label: "ready keys", from: (p) => p.ready, colour: "--amber" },
      { label: "delayed keys", from: (p) => p.delayed, colour: "--muted" },
    ],
  },
];

export class Charts {
  // least is the number of seconds that a chart has at least.
  constructor(parent, wanted = defs, least = 60) {
    this.least = least;
    this.charts = wanted.map((def) => {
      const values = def.series.map((s) => {
        const value = el("b", {}, "–");
        return { value, item: el("li", {}, el("i", { className: "swatch", "data-colour": s.colour.slice(2) }), s.label, " ", value) };
      });
      const plot = el("div", { className: "plot", "aria-hidden": "true" });
      parent.append(el("figure", { className: "panel chart" },
        el("figcaption", {}, el("h3", {}, def.title), el("span", { className: "muted" }, def.unit)),
        plot, el("ul", { className: "legend", "aria-label": `${def.title}, ${def.unit}, latest values` }, ...values.map((v) => v.item))));
      return { def, plot, values, uplot: null };
    });
    const redraw = () => this.rebuild();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new ResizeObserver(() => this.resize()).observe(parent);
  }

  rebuild() {
    for (const c of this.charts) {
      c.uplot?.destroy();
      c.uplot = null;
    }
    if (this.points) this.update(this.points);
  }

  resize() {
    for (const c of this.charts) {
      if (c.uplot && c.plot.clientWidth > 0) c.uplot.setSize({ width: c.plot.clientWidth, height: 120 });
    }
  }

  update(points) {
    this.points = points;
    const last = points.at(-1);
    for (const c of this.charts) {
      const data = [points.map((p) => p.at), ...c.def.series.map((s) => points.map(s.from))];
      c.def.series.forEach((s, i) => {
        const v = last ? s.from(last) : null;
        c.values[i].value.textContent = v === null ? "–" : c.def.format(v);
      });
      if (c.plot.clientWidth === 0) continue;
      if (points.length < 2) { // only the axes, so that the chart has its place from the beginning
        const at = last?.at ?? Date.now() / 1000;
        data.forEach((series, i) => series.splice(0, 2, ...(i === 0 ? [at - 1, at] : [null, null])));
      }
      if (c.uplot) c.uplot.setData(data);
      else c.uplot = new uPlot(options(c, this.least), data, c.plot);
    }
  }
}

// The steps of an axis are whole numbers, and those of a logarithmic one are powers of ten.
const WHOLE = Array.from({ length: 27 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

function decades(u, axis, min, max) {
  const all = [];
  for (let v = min; v <= max * 1.001; v *= 10) all.push(v);
  return all;
}

function options({ def, plot }, least) {
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const clock = (s, step) => `${new Date(s * 1000).toLocaleTimeString("en-GB")}${step < 1 ? (s % 1).toFixed(1).slice(1) : ""}`;
  const fits = (u, s) => { // a label is neither below the other axis nor cut by the end
    const x = u.valToPos(s, "x");
    return x > 20 && x < plot.clientWidth - 56 - 26;
  };
  return {
    width: plot.clientWidth, height: 120, legend: { show: false }, cursor: { show: false }, padding: [8, 4, 0, 0],
    scales: {
      x: { time: true, range: (u, min, max) => [Math.min(min, max - least), max] },
      y: def.log ? { distr: 3, range: (u, min, max) => (max > 0 ? [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max) + 1e-9)] : [1e-5, 1]) }
        : { range: (u, min, max) => [0, Math.max(4, max * 1.15)] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 22, space: 70, values: (u, splits, n, space, step) => splits.map((s) => (fits(u, s) ? clock(s, step) : "")) },
      { ...axis, size: 52, space: 26, incrs: WHOLE, ...(def.log && { splits: decades, filter: (u, splits) => splits }), values: (u, splits) => splits.map((v, i) => (def.log && splits.length > 4 && i % 2 ? "" : def.format(v).replace(".0", ""))) },
    ],
    series: [{}, ...def.series.map((s) => ({ label: s.label, stroke: colour(s.colour), width: 1.5, spanGaps: true, points: { show: false } }))],
  };
}
