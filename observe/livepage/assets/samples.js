// The last minutes of answers, and what follows from the difference of two of them.

const KEEP = 300; // seconds

// Samples has the answers of the server, reduced to what the charts and the rates need.
export class Samples {
  constructor() {
    this.latest = null;
    this.before = null;
    this.points = []; // one for each answer
  }

  // add takes an answer, and computes a point for the charts.
  add(state) {
    const restarted = this.latest && (state.started !== this.latest.started || state.now < this.latest.now);
    if (restarted) {
      this.points = [];
      this.latest = null;
    }
    this.before = this.latest;
    this.latest = state;
    if (!this.before) return;
    const s = this.seconds();
    if (s <= 0) return;
    const total = (list, f) => list.reduce((n, x) => n + f(x), 0);
    const q = (part, field) => quantiles(merge(state[part].map((x) => delta(x[field], find(this.before[part], x.name)?.[field]))));
    this.points.push({
      at: state.now / 1000,
      events: this.total("informers", (i) => i.counters.Events),
      reconciles: this.total("controllers", (c) => c.stats.Reconciles),
      errors: this.total("controllers", (c) => c.stats.Failed + c.stats.Terminal + c.stats.Dropped),
      pending: total(state.informers, (i) => i.handlers.reduce((n, h) => n + h.pending, 0)),
      ready: total(state.controllers, (c) => c.stats.Queue.Depth) + total(state.queues, (x) => x.stats.Depth),
      delayed: total(state.controllers, (c) => c.stats.Queue.Delayed) + total(state.queues, (x) => x.stats.Delayed),
      stored: q("informers", "stored"),
      added: q("controllers", "added"),
      waited: q("controllers", "waited"),
      worked: q("controllers", "worked"),
    });
    while (this.points.length > 0 && this.points[0].at < state.now / 1000 - KEEP) this.points.shift();
  }

  // seconds is the time between the last two answers.
  seconds() {
    return this.before ? (this.latest.now - this.before.now) / 1000 : 0;
  }

  // rate is the growth of a counter for each second, or null before the second answer.
  rate(part, name, f) {
    const s = this.seconds();
    const now = find(this.latest[part], name);
    const then = this.before && find(this.before[part], name);
    if (!now || !then || s <= 0) return null;
    return Math.max(0, f(now) - f(then)) / s; // another part of this name began at zero
  }

  // total is the sum of the rates of a part, or null before the second answer. A new member may have counted for hours.
  total(part, f) {
    return this.seconds() > 0 ? this.latest[part].reduce((n, x) => n + (this.rate(part, x.name, f) ?? 0), 0) : null;
  }
}

export const find = (list, name) => list.find((x) => x.name === name);

// delta is the part of a histogram that came after an earlier answer.
function delta(now, then) {
  if (!now) return { first: 0, counts: [] };
  if (!then) return { first: now.first, counts: [] }; // it may have begun before the page was opened
  return { first: now.first, counts: now.counts.map((n, i) => Math.max(0, n - (then.counts[now.first + i - then.first] ?? 0))) };
}

function merge(all) {
  const sum = new Array(64).fill(0);
  for (const h of all) h.counts.forEach((n, i) => (sum[h.first + i] += n));
  return sum;
}

// quantiles returns the median and the 99th percentile in seconds, or null without a value.
function quantiles(counts) {
  const n = counts.reduce((a, b) => a + b, 0);
  if (n === 0) return null;
  const at = (share) => {
    let seen = 0;
    for (let i = 0; i < counts.length; i++) {
      seen += counts[i];
      if (seen >= share * n) return upper(i);
    }
    return upper(counts.length - 1);
  };
  return { n, p50: at(0.5), p99: at(0.99) };
}

// upper is the end of a bucket in seconds: see histogram.go.
const upper = (i) => (i % 2 === 0 ? 1.5 : 2) * 2 ** Math.floor(i / 2) * 1e-6;
