// The view Live: the pipeline with its numbers, the charts, the informers and the controllers.
import { el, text, attr, show, Rows, More, number, rate, duration, ago, bytes, plural } from "./dom.js";
import { objectLink } from "./object.js";
import { Charts } from "./charts.js";

const NBSP = "\u00a0";

const sum = (list, f) => list.reduce((n, x) => n + f(x), 0);

// stream says what the stream of an informer does, and how good that is.
export function stream(i, now) {
  if (!i.running) return i.phase === "idle" ? ["idle", "not started"] : ["idle", "stopped"];
  const of = i.remaining > 0 ? ` of ${number(i.received + i.remaining)}` : "";
  switch (i.phase) {
    case "watching": return [i.synced ? "ok" : "wait", "watching"];
    case "WatchList": return ["wait", `WatchList, ${plural(i.received, "object")}${of}`];
    case "listing": return ["wait", `list, ${plural(i.received, "object")}${of}`];
    case "queued": return ["wait", "waits for other lists"];
    case "waiting": {
      const left = (i.nextAttempt - now) / 1000;
      return ["bad", `waiting ${left > 0 ? duration(left) : ""} after ${plural(i.attempt, "failure")}`];
    }
    default: return ["idle", i.phase];
  }
}

// why says in a few words why the stream does that, or nothing while it watches.
export function why(i) {
  const error = i.error || "a request that failed";
  if (i.failing) return i.error || "the last request failed";
  if (!i.running) return i.phase === "idle" ? "nothing runs the informer" : "its Run has ended";
  switch (i.phase) {
    case "watching": return i.synced ? "" : "the first list is not in the cache";
    case "WatchList": case "listing": return i.counters.Lists === 0 ? "the first list" : i.lastErrorAt ? `after ${error}` : "the watch could not go on";
    default: return "";
  }
}

// size formats the size of a cache. It is that of the objects in JSON, estimated from a sample; memory is another number.
const size = (n) => (n > 0 ? `about ${bytes(n)} as JSON`.replaceAll(" ", NBSP) : ""); // it stays on one line

// worst returns the worst of states.
export const worst = (states) => ["bad", "wait", "ok"].find((s) => states.includes(s)) ?? "idle";

function handlerState(h, slow, now) {
  if (h.stuckSince > 0) return ["bad", `stuck for ${duration((now - h.stuckSince) / 1000)}`];
  if (h.panics > 0) return ["wait", plural(h.panics, "panic")];
  if (slow) return ["wait", "slow"];
  return h.synced ? ["ok", "up to date"] : ["wait", "not synced"];
}

const failures = (c) => c.stats.Failed + c.stats.Terminal + c.stats.Dropped;
const MINUTE = 60000; // milliseconds

const dot = () => el("i", { className: "dot", "aria-hidden": "true" });

export class Live {
  constructor(root, samples) {
    this.samples = samples;
    this.slow = new Map(); // handlers whose backlog grows: key → answers in a row
    this.troubled = new Map(); // controllers with a problem in the last minute: name → time
    this.filter = el("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter informers and controllers by name", oninput: () => this.update(samples.latest) });
    this.pipeline = new Pipeline();
    this.charts = el("div", { className: "charts" });
    this.empty = el("p", { className: "hint", hidden: true }, "This program has no informer and no controller yet.");
    this.informerTitle = el("h2", { id: "informers-title" }, "Informers");
    const body = el("tbody");
    this.informerPanel = el("section", { "aria-labelledby": "informers-title" },
      el("div", { className: "title-row" }, this.informerTitle, this.filter),
      el("div", { className: "panel table-wrap", role: "region", "aria-labelledby": "informers-title", tabIndex: 0 }, el("table", { className: "informers", "aria-labelledby": "informers-title" },
        el("thead", {}, el("tr", {}, ...["Informer", "Stream", "Objects", "Version", "Heard", "Events/s", "Batches/s", "Stored, p99", "Handlers"].map((h, i) =>
          el("th", { scope: "col", className: i >= 2 && i <= 7 ? "num" : "" }, h)))), body)));
    this.informers = new Rows(body, (i) => i.name, (i) => new InformerRow(i, this));
    this.moreInformers = new More(20, "informer", () => this.update(samples.latest));
    this.informerPanel.append(this.moreInformers.node);
    const electors = el("div", { className: "cards" });
    this.electorPanel = el("section", { "aria-labelledby": "electors-title" }, el("h2", { id: "electors-title" }, "Leader election"), electors);
    this.electors = new Rows(electors, (e) => e.name, (e) => new ElectorCard(e));
    const shards = el("div", { className: "cards" });
    this.shardPanel = el("section", { "aria-labelledby": "shards-title" }, el("h2", { id: "shards-title" }, "Shards"), shards);
    this.shards = new Rows(shards, (m) => m.name, (m) => new ShardCard(m));
    const controllers = el("div", { className: "cards" });
    this.controllerPanel = el("section", { "aria-labelledby": "controllers-title" },
      el("h2", { id: "controllers-title" }, "Controllers"), controllers);
    this.moreControllers = new More(12, "controller", () => this.update(samples.latest));
    this.controllerPanel.append(this.moreControllers.node);
    this.controllers = new Rows(controllers, (c) => c.name, (c) => new ControllerCard(c, this));
    const queues = el("div", { className: "cards" });
    this.queuePanel = el("section", { "aria-labelledby": "queues-title" }, el("h2", { id: "queues-title" }, "Other queues and gates"), queues);
    this.queues = new Rows(queues, (q) => q.kind + q.name, (q) => new QueueCard(q));
    root.append(el("h1", { className: "visually-hidden" }, "Live"), this.pipeline.node, this.charts, this.empty,
      this.informerPanel, this.controllerPanel, this.electorPanel, this.shardPanel, this.queuePanel);
  }

  update(s) {
    if (!s) return;
    this.plots ??= new Charts(this.charts);
    this.note(s);
    this.pipeline.update(s, this);
    this.plots.update(this.samples.points);
    const wanted = this.filter.value.trim().toLowerCase();
    const match = (x) => x.name.toLowerCase().includes(wanted);
    const severity = { bad: 0, wait: 1, idle: 2 };
    const order = (i) => severity[this.stateOf(i, s.now)] ?? 3;
    const informers = s.informers.filter(match).sort((a, b) => order(a) - order(b) || a.name.localeCompare(b.name));
    const shown = new Set(informers);
    text(this.informerTitle, s.informers.length > 3 ? `Informers (${informers.length === s.informers.length ? s.informers.length : `${shown.size} of ${s.informers.length}`})` : "Informers");
    show(this.filter, s.informers.length + s.controllers.length > 5);
    show(this.informerPanel, s.informers.length > 0);
    show(this.controllerPanel, s.controllers.length > 0);
    show(this.electorPanel, s.electors.length > 0);
    show(this.shardPanel, s.shards.length > 0);
    show(this.queuePanel, s.queues.length + s.gates.length > 0);
    show(this.empty, s.informers.length + s.controllers.length + s.queues.length === 0);
    this.informers.update(this.moreInformers.of(informers), s);
    const controllers = s.controllers.filter(match).sort((a, b) => this.troubled.has(b.name) - this.troubled.has(a.name));
    this.controllers.update(this.moreControllers.of(controllers), s);
    this.electors.update(s.electors);
    this.shards.update(s.shards, s);
    this.queues.update([...s.queues.map((q) => ({ ...q, kind: "queue" })), ...s.gates.map((g) => ({ ...g, kind: "gate" }))], s);
  }

  // note finds handlers that are behind in three answers in a row, and controllers with a problem. These stay first for a
  // minute, so that their cards do not move with each error.
  note(s) {
    if (this.noted === s) return;
    this.noted = s;
    const earlier = this.troubled;
    this.troubled = new Map(); // without controllers that are gone
    for (const c of s.controllers) {
      const at = !c.stats.Synced || this.samples.rate("controllers", c.name, failures) > 0 ? s.now : earlier.get(c.name);
      if (s.now - at < MINUTE) this.troubled.set(c.name, at);
    }
    const before = this.slow;
    this.slow = new Map(); // without handlers that are gone
    for (const i of s.informers) {
      i.handlers.forEach((h, n) => {
        const key = `${i.name} ${h.name} ${n}`;
        this.slow.set(key, h.pending > 0 ? (before.get(key) ?? 0) + 1 : 0);
      });
    }
  }

  isSlow(i, h, n) { return (this.slow.get(`${i.name} ${h.name} ${n}`) ?? 0) >= 3; }

  stateOf(i, now) {
    const states = [stream(i, now)[0], ...i.handlers.map((h, n) => handlerState(h, this.isSlow(i, h, n), now)[0])];
    if (i.undecodable > 0) states.push("wait");
    const all = worst(states);
    return all === "ok" && states[0] === "idle" ? "idle" : all; // its handlers are well, but it does not run
  }
}

// Pipeline is the picture of the README, with numbers.
export class Pipeline {
  constructor() {
    const stage = (name, title, unit) => {
      const s = { name, dot: dot(), value: el("b", { className: "big" }, "–"), unit: el("span", { className: "unit" }, unit), note: el("p", { className: "note" }) };
      s.held = el("p", { className: "note held", hidden: true });
      s.node = el("li", { className: "stage", "data-stage": name }, el("h3", {}, s.dot, title), el("p", { className: "figure" }, s.value, " ", s.unit), s.note, s.held);
      return s;
    };
    this.stages = [
      stage("stream", "Streams", "events/s"), stage("fifo", "DeltaFIFO", "batches/s"), stage("cache", "Cache", "objects"),
      stage("handlers", "Handlers", "pending"), stage("queue", "Workqueue", "ready"), stage("workers", "Workers", "busy"),
    ];
    this.node = el("section", { className: "picture", "aria-label": "Pipeline" }, el("h2", { className: "visually-hidden" }, "Pipeline"), el("ol", { className: "pipeline panel" }, ...this.stages.map((s) => s.node)));
  }

  set(n, { value, note, state, flows }) {
    const s = this.stages[n];
    text(s.value, value);
    text(s.note, note);
    attr(s.dot, "data-state", state);
    s.node.classList.toggle("flows", Boolean(flows));
  }

  // hold shows work that waits in front of a stage.
  hold(all) {
    for (const stage of this.stages) {
      const held = all.filter((h) => h.stage === stage.name);
      show(stage.held, held.length > 0);
      text(stage.held, held.length ? `${number(held.length)} held back` : "");
      stage.node.classList.toggle("holds", held.length > 0);
    }
  }

  update(s, live) {
    const { samples } = live;
    this.hold(s.held);
    const p = samples.points.at(-1);
    const phases = s.informers.map((i) => stream(i, s.now));
    const batches = samples.total("informers", (i) => i.batches);
    const changes = samples.total("informers", (i) => i.changes);
    const watching = s.informers.filter((i) => i.phase === "watching").length;
    const waiting = s.informers.filter((i) => i.phase === "waiting").length;
    this.set(0, {
      value: p ? rate(p.events) : "–", state: worst(phases.map((x) => x[0])), flows: p?.events > 0,
      note: s.informers.length === 1 ? phases[0][1] : `${watching} of ${s.informers.length} watching${waiting ? `, ${waiting} waiting` : ""}`,
    });
    const depth = sum(s.informers, (i) => i.depth);
    this.set(1, {
      value: rate(batches), state: "ok", flows: batches > 0,
      note: [batches > 0 ? `${(changes / batches).toFixed(1)} a batch` : "no batch", depth ? `${plural(depth, "object")} queued` : "queue empty"].join(", "),
    });
    const unsynced = s.informers.filter((i) => !i.synced).length;
    const heard = Math.min(...s.informers.map((i) => i.heardAt || Infinity));
    this.set(2, {
      value: number(sum(s.informers, (i) => i.objects)), state: unsynced ? "wait" : "ok", flows: batches > 0,
      note: [unsynced ? `${unsynced} not synced` : Number.isFinite(heard) ? `heard ${ago((s.now - heard) / 1000)}` : "", size(sum(s.informers, (i) => i.bytes))].filter(Boolean).join(", "),
    });
    const handlers = s.informers.flatMap((i) => i.handlers.map((h, n) => handlerState(h, live.isSlow(i, h, n), s.now)));
    const pending = sum(s.informers, (i) => sum(i.handlers, (h) => h.pending));
    const trouble = handlers.find((h) => h[0] === "bad") ?? handlers.find((h) => h[0] === "wait");
    this.set(3, { value: number(pending), state: worst(handlers.map((h) => h[0])), flows: p?.reconciles > 0, note: `${plural(handlers.length, "handler")}${trouble ? `, ${trouble[1]}` : ""}` });
    const queues = [...s.controllers.map((c) => c.stats.Queue), ...s.queues.map((q) => q.stats)];
    const retries = samples.total("controllers", (c) => c.stats.Queue.Retries);
    this.set(4, {
      value: number(sum(queues, (q) => q.Depth)), state: queues.length ? "ok" : "idle", flows: p?.reconciles > 0,
      note: `${number(sum(queues, (q) => q.Delayed))} delayed${retries > 0 ? `, ${rate(retries)} retries/s` : ""}`,
    });
    const busy = sum(s.controllers, (c) => c.stats.ActiveWorkers);
    const workers = sum(s.controllers, (c) => c.stats.Workers);
    this.set(5, {
      value: `${number(busy)} / ${number(workers)}`, flows: false,
      state: s.controllers.length === 0 ? "idle" : p?.errors > 0 ? "bad" : s.controllers.every((c) => c.stats.Synced) ? "ok" : "wait",
      note: p ? `${rate(p.reconciles)} reconciles/s${p.errors > 0 ? `, ${rate(p.errors)} errors/s` : ""}` : "",
    });
  }
}

// InformerRow is a row of the table, and a second one with the handlers.
class InformerRow {
  constructor(i, live) {
    this.live = live;
    this.dot = dot();
    const id = `details-${Math.random().toString(36).slice(2)}`;
    this.toggle = el("button", { type: "button", className: "disclosure", "aria-expanded": "false", "aria-controls": id, onclick: () => this.open(this.details.hidden) }, this.dot, el("span", {}, i.name));
    this.cells = Array.from({ length: 8 }, (_, n) => el("td", { className: n >= 1 && n <= 6 ? "num" : "" }));
    this.stream = el("span");
    this.why = el("span", { className: "why" });
    this.cells[0].append(this.stream, this.why);
    const onkeydown = (e) => {
      if (e.key !== "Escape" || this.details.hidden) return;
      this.open(false);
      this.toggle.focus();
    };
    const row = el("tr", { onkeydown }, el("th", { scope: "row" }, this.toggle), ...this.cells);
    this.list = el("tbody");
    this.handlers = new Rows(this.list, (h) => h.key, () => new HandlerRow());
    this.error = el("p", { className: "error-text", hidden: true });
    this.scopeList = el("tbody");
    this.scopes = new Rows(this.scopeList, (s) => s.name, () => new ScopeRow());
    this.scopeTable = el("table", { className: "handlers", hidden: true, "aria-label": `Scopes of ${i.name}` }, el("thead", {}, el("tr", {}, ...["Scope", "State", "Objects", "Dropped"].map((h, n) => el("th", { scope: "col", className: n >= 2 ? "num" : "" }, h)))), this.scopeList);
    this.facts = el("p", { className: "muted facts" });
    this.details = el("tr", { id, className: "details", hidden: true, onkeydown }, el("td", { colSpan: 9 }, this.error,
      el("table", { className: "handlers", "aria-label": `Handlers of ${i.name}` }, el("thead", {}, el("tr", {}, ...["Handler", "State", "Pending", "Panics"].map((h, n) => el("th", { scope: "col", className: n >= 2 ? "num" : "" }, h)))), this.list), this.scopeTable, this.facts));
    this.nodes = [row, this.details];
  }

  open(yes) {
    show(this.details, yes);
    attr(this.toggle, "aria-expanded", String(yes));
    this.live.update(this.live.samples.latest);
  }

  update(i, s) {
    const { samples } = this.live;
    const [state, what] = stream(i, s.now);
    const overall = this.live.stateOf(i, s.now);
    attr(this.dot, "data-state", overall);
    attr(this.nodes[0], "data-state", overall);
    const pending = sum(i.handlers, (h) => h.pending);
    const states = i.handlers.map((h, n) => handlerState(h, this.live.isSlow(i, h, n), s.now));
    const trouble = states.find((h) => h[0] === "bad") ?? states.find((h) => h[0] === "wait");
    const p99 = latest(samples, i.name);
    const values = [
      what, number(i.objects), i.version || "–", i.heardAt ? ago((s.now - i.heardAt) / 1000) : "–",
      rate(samples.rate("informers", i.name, (x) => x.counters.Events)), rate(samples.rate("informers", i.name, (x) => x.batches)),
      duration(p99), `${i.handlers.length}${pending ? `, ${number(pending)} pending` : ""}${trouble ? `, ${trouble[1]}` : ""}`,
    ];
    values.forEach((v, n) => text(n === 0 ? this.stream : this.cells[n], v));
    const reason = why(i);
    text(this.why, reason);
    attr(this.why, "title", reason || null); // an opened row shows the whole text, also without a mouse
    show(this.why, reason !== "");
    attr(this.cells[0], "class", `state-${state}`);
    attr(this.cells[7], "class", trouble ? `state-${trouble[0]}` : null);
    if (this.details.hidden) return;
    const said = i.error || (i.failing ? "The last request failed. The text is shown when the program allows debugging." : "");
    show(this.error, said !== "");
    text(this.error, i.error ? `${i.failing ? "Error" : `Last error, ${ago((s.now - i.lastErrorAt) / 1000)}`}: ${said}` : said);
    this.error.classList.toggle("past", !i.failing);
    this.handlers.update(i.handlers.map((h, n) => ({ ...h, key: `${n} ${h.name}`, state: states[n] })));
    show(this.scopeTable, i.scopes.length > 0);
    this.scopes.update(i.scopes);
    const c = i.counters;
    text(this.facts, [
      i.scopeCount ? `${plural(i.scopeCount, "scope")}${i.scopes.length && i.scopes.length < i.scopeCount ? `, ${number(i.scopes.length)} shown` : ""}` : "",
      i.shard.by ? `shards: the ${i.shard.by === "undecided" ? "server has not said who cuts" : `${i.shard.by} cuts`}, ${plural(i.shard.dropped, "object or event", "objects and events")} of others dropped${i.shard.reason ? `, because ${i.shard.reason}` : ""}` : "",
      i.depth ? `${plural(i.depth, "object")} with changes in the DeltaFIFO` : "",
      i.sampled ? `${size(i.bytes)}, from a sample of ${plural(i.sampled, "object")}` : "",
      plural(c.Events, "event"), plural(c.Bookmarks, "bookmark"), plural(c.Lists, "complete list"), plural(c.WatchLists, "WatchList"), plural(c.Pages, "page"), plural(c.Watches, "watch", "watches"),
      c.Expired ? `${number(c.Expired)} answers 410` : "", c.Stale ? plural(c.Stale, "stale event") : "", i.undecodable ? plural(i.undecodable, "undecodable object") : "", c.Malformed ? plural(c.Malformed, "malformed object") : "",
    ].filter(Boolean).join(" · "));
  }
}

// latest returns the 99th percentile of the time to the cache in the last answer, or null.
function latest(samples, name) {
  const now = samples.latest.informers.find((i) => i.name === name)?.stored;
  const then = samples.before?.informers.find((i) => i.name === name)?.stored;
  if (!now || !then) return null;
  let n = 0;
  const counts = now.counts.map((v, i) => Math.max(0, v - (then.counts[now.first + i - then.first] ?? 0)));
  const total = counts.reduce((a, b) => a + b, 0);
  for (let i = 0; i < counts.length; i++) {
    n += counts[i];
    if (total > 0 && n >= 0.99 * total) return ((now.first + i) % 2 === 0 ? 1.5 : 2) * 2 ** Math.floor((now.first + i) / 2) * 1e-6;
  }
  return null;
}

class ScopeRow {
  constructor() {
    this.name = el("th", { scope: "row" });
    this.dot = dot();
    this.state = el("span");
    this.objects = el("td", { className: "num" });
    this.dropped = el("td", { className: "num" });
    this.node = el("tr", {}, this.name, el("td", {}, this.dot, this.state), this.objects, this.dropped);
  }

  update(s) {
    text(this.name, s.name);
    attr(this.dot, "data-state", s.error ? "bad" : s.synced ? "ok" : "wait");
    text(this.state, [s.phase === "queued" ? "waits for other lists" : s.phase, s.shard.by ? `${s.shard.by} cuts` : "", s.error].filter(Boolean).join(", "));
    text(this.objects, number(s.objects));
    text(this.dropped, s.shard.by ? number(s.shard.dropped) : "–");
  }
}

class HandlerRow {
  constructor() {
    this.name = el("th", { scope: "row" });
    this.dot = dot();
    this.state = el("span");
    this.pending = el("td", { className: "num" });
    this.panics = el("td", { className: "num" });
    this.node = el("tr", {}, this.name, el("td", {}, this.dot, this.state), this.pending, this.panics);
  }

  update(h) {
    text(this.name, h.name);
    attr(this.dot, "data-state", h.state[0]);
    text(this.state, h.state[1]);
    text(this.pending, number(h.pending));
    text(this.panics, number(h.panics));
  }
}

const figure = (label) => {
  const value = el("b", {}, "–");
  return { value, node: el("div", { className: "stat" }, value, el("span", {}, label)) };
};

class ControllerCard {
  constructor(c, live) {
    this.live = live;
    this.dot = dot();
    this.state = el("span", { className: "muted" });
    this.figures = Object.fromEntries([["ready", "ready"], ["delayed", "delayed"], ["work", "in work"], ["retries", "retries/s"], ["reconciles", "reconciles/s"], ["failed", "errors/s"]].map(([k, label]) => [k, figure(label)]));
    this.priorities = el("p", { className: "muted", hidden: true });
    this.workers = el("ul", { className: "workers", "aria-label": "Workers" });
    this.rows = new Rows(this.workers, (w) => w.ID, () => new WorkerRow(live));
    this.idle = el("p", { className: "muted" });
    this.unsynced = el("p", { className: "error-text", hidden: true });
    this.node = el("article", { className: "panel card" },
      el("header", {}, el("h3", {}, this.dot, c.name), this.state),
      el("div", { className: "stats" }, ...Object.values(this.figures).map((f) => f.node)),
      this.priorities, this.unsynced, this.workers, this.idle);
  }

  update(c, s) {
    const { samples } = this.live;
    const q = c.stats.Queue;
    const grows = (f) => samples.rate("controllers", c.name, f);
    const errors = grows(failures);
    const missing = c.unsynced.filter((u) => u.NotSynced);
    const state = errors > 0 ? "bad" : !c.stats.Synced || c.stats.Held ? "wait" : "ok";
    attr(this.dot, "data-state", state);
    text(this.state, c.stats.Held ? "synced, waits for the lease" : c.stats.Synced ? `${plural(c.stats.Reconciles, "reconcile")}, ${plural(failures(c), "error")}` : "waits for its sources");
    const set = (k, v, bad) => {
      text(this.figures[k].value, v);
      attr(this.figures[k].value, "data-state", bad ? "bad" : null);
    };
    set("ready", number(q.Depth));
    set("delayed", number(q.Delayed));
    set("work", `${number(q.Processing)} / ${number(c.stats.Workers)}`);
    set("retries", rate(grows((x) => x.stats.Queue.Retries)));
    set("reconciles", rate(grows((x) => x.stats.Reconciles)));
    set("failed", rate(errors), errors > 0);
    const levels = Object.entries(q.ByPriority ?? {}).filter(([, n]) => n > 0).sort(([a], [b]) => b - a);
    show(this.priorities, levels.length > 1 || c.stats.Gated > 0 || c.stats.Panics > 0);
    text(this.priorities, [
      levels.length ? `ready by priority: ${levels.map(([p, n]) => `${p}: ${number(n)}`).join(", ")}` : "",
      c.stats.Gated > 0 ? `${plural(c.stats.Gated, "key")} held back by the gate` : "", c.stats.Panics > 0 ? plural(c.stats.Panics, "panic") : "",
    ].filter(Boolean).join(" · "));
    show(this.unsynced, missing.length > 0);
    text(this.unsynced, missing.map((u) => (u.NotSynced.startsWith(u.Name) ? u.NotSynced : `${u.Name}: ${u.NotSynced}`)).join(" · "));
    const running = c.running.slice(0, 12);
    const source = s.informers.find((i) => c.stats.Sources?.some((x) => i.name.startsWith(x.Name) && i.handlers.some((h) => h.name === `${c.name}: ${x.Name}`)));
    this.rows.update(running, s, source?.name);
    const free = c.stats.Workers - c.stats.ActiveWorkers;
    const more = c.running.length - running.length;
    text(this.idle, [more > 0 ? `and ${number(more)} more at work` : "", !s.debug && c.stats.ActiveWorkers > 0 ? `${plural(c.stats.ActiveWorkers, "worker")} at work` : "", `${plural(free, "worker")} idle`].filter(Boolean).join(", "));
  }
}

class WorkerRow {
  constructor(live) {
    this.key = el("a", { className: "key" });
    this.since = el("span", { className: "num" });
    this.cause = el("span", { className: "muted cause" });
    this.node = el("li", {}, this.key, this.since, this.cause);
  }

  update(w, s, informer) {
    this.informer = informer;
    text(this.key, w.Key);
    attr(this.key, "href", this.informer ? objectLink(this.informer, w.Key) : null);
    const since = (s.now - Date.parse(w.Started)) / 1000;
    text(this.since, since < 1e-3 ? "now" : duration(since));
    const c = w.Causes?.[0];
    text(this.cause, `${w.Attempt > 1 ? `attempt ${w.Attempt}, ` : ""}${c ? `${c.Source} ${c.Event} ${c.Object}` : ""}`);
  }
}

class ElectorCard {
  constructor() {
    this.dot = dot();
    this.title = el("span");
    this.lease = el("span", { className: "muted" });
    this.state = el("p");
    this.error = el("p", { className: "error-text", hidden: true });
    this.node = el("article", { className: "panel card" }, el("header", {}, el("h3", {}, this.dot, this.title), this.lease), this.state, this.error);
  }

  update(e) {
    attr(this.dot, "data-state", e.error ? "bad" : e.leads ? "ok" : "wait");
    show(this.error, Boolean(e.error));
    text(this.error, e.error ? `The last attempt failed: ${e.error}` : "");
    text(this.title, e.identity || e.name);
    text(this.lease, e.lease ? `lease ${e.lease}` : "");
    text(this.state, e.leads ? "leads" : e.leader ? (e.leader === e.identity ? "has lost the lease" : `waits for the lease of ${e.leader}`) : "does not lead");
  }
}

class ShardCard {
  constructor(m) {
    this.dot = dot();
    this.state = el("span", { className: "muted" });
    this.figures = ["of all hashes", "ranges", "members", "in work", "moves"].map(figure);
    this.text = el("p", { className: "muted" });
    this.node = el("article", { className: "panel card" }, el("header", {}, el("h3", {}, this.dot, m.name), this.state),
      el("div", { className: "stats" }, ...this.figures.map((f) => f.node)), this.text);
  }

  update(m, s) {
    const late = m.waitingSince || m.releasingSince;
    attr(this.dot, "data-state", m.failing ? "bad" : late || !m.member ? "wait" : "ok");
    const percent = (share) => `${(100 * share).toFixed(1)} %`;
    const since = (t) => duration(Math.max(0, s.now - t) / 1000);
    text(this.state, [
      m.member ? `renewed ${ago(Math.max(0, s.now - m.renewed) / 1000)}` : "not a member",
      m.waitingSince ? `waits for ${percent(m.waiting)} since ${since(m.waitingSince)}` : "",
      m.releasingSince ? `releases ${percent(m.releasing)} since ${since(m.releasingSince)}` : "",
    ].filter(Boolean).join(", "));
    [percent(m.held), number(m.ranges), number(m.members), number(m.work), number(m.moves)].forEach((v, n) => text(this.figures[n].value, v));
    text(this.text, m.text || (m.failing ? "The last step failed. The text is shown when the program allows debugging." : ""));
    show(this.text, this.text.textContent !== "");
  }
}

class QueueCard {
  constructor(q) {
    const labels = q.kind === "gate" ? ["keys", "waits", "timeouts"] : ["ready", "delayed", "in work", "retries"];
    this.figures = labels.map(figure);
    this.node = el("article", { className: "panel card" }, el("header", {}, el("h3", {}, dot(), q.name), el("span", { className: "muted" }, q.kind)),
      el("div", { className: "stats" }, ...this.figures.map((f) => f.node)));
  }

  update(q) {
    const s = q.stats;
    const values = q.kind === "gate" ? [s.Keys, s.Waits, s.TimedOut] : [s.Depth, s.Delayed, s.Processing, s.Retries];
    values.forEach((v, n) => text(this.figures[n].value, number(v)));
  }
}
