// The page of a recording. The browser has the time; each answer of the server is that of one moment.
import { el, text, attr, show, Rows, bytes, number, rate, duration, plural } from "./dom.js";
import { $, Views } from "./views.js";
import { Charts } from "./charts.js";
import { OneObject, decode, objectLink } from "./object.js";

const FRAME = 150; // milliseconds between two moments while the recording plays, at least
const SPEEDS = [0.1, 0.25, 1, 4, 16, 60, 240, 1000, 3600];

// clock formats a time in microseconds.
export const clock = (at) => `${new Date(at / 1000).toLocaleTimeString("en-GB")}.${String(Math.floor(at / 1000) % 1000).padStart(3, "0")}`;

const PROVENANCE = "Streams, events, bytes and versions are those that the recorded client received. Objects and changes are what an informer of " +
  "that client had cached, computed by leat from these bytes. A recording has no batches, handlers, queues and reconciles.";

const date = (at) => new Date(at / 1000).toLocaleDateString("en-CA");

async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(30000) });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

// Transport has the controls of the time. moved is called with each new time, and with whether it plays.
class Transport {
  constructor(root, file, moved) {
    Object.assign(this, { file, moved, at: file.first, playing: false });
    this.button = el("button", { type: "button", id: "play", onclick: () => this.play(!this.playing) }, "Play");
    this.speed = el("select", { "aria-label": "Speed", id: "speed" }, ...SPEEDS.map((s) => el("option", { value: s, selected: s === 1 }, s < 1 ? `${s} ×` : `${number(s)} ×`)));
    this.strip = strip(file);
    this.cursor = this.strip.querySelector("line");
    this.slider = el("input", {
      type: "range", id: "time", min: 0, max: file.last - file.first, step: "any", value: 0, "aria-label": "Time", "aria-describedby": "keys-help",
      oninput: () => this.seek(file.first + Math.round(Number(this.slider.value)), false), onchange: () => this.settle(),
      onkeydown: (e) => this.key(e, { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }),
    });
    this.day = el("span", { className: "muted" });
    this.shown = el("b");
    this.passed = el("span", { className: "muted" });
    this.output = el("output", { className: "time", htmlFor: "time" }, this.day, " ", this.shown, " ", this.passed);
    this.node = el("div", { className: "transport", role: "group", "aria-label": "Time of the recording" },
      el("button", { type: "button", id: "back", "aria-label": "Step back", onclick: () => this.step(-1) }, "‹ Back"), this.button,
      el("button", { type: "button", id: "forward", "aria-label": "Step forward", onclick: () => this.step(1) }, "Forward ›"), this.speed,
      el("div", { className: "slide" }, this.strip, this.slider), this.output,
      el("span", { id: "keys-help", className: "visually-hidden" }, "Arrow keys step from change to change. Page Up and Page Down move by a tenth, Home and End to the ends. The space bar plays and pauses."));
    root.append(this.node);
    addEventListener("keydown", (e) => { // only if the focus is on nothing else that takes keys
      if (e.target === document.body || e.target.id === "main") this.key(e, { ".": 1, ArrowRight: 1, ",": -1, ArrowLeft: -1 });
    });
  }

  key(e, steps) {
    if (e.altKey || e.ctrlKey || e.metaKey) return;
    const tenth = (this.file.last - this.file.first) / 10;
    if (steps[e.key]) this.step(steps[e.key]);
    else if (e.key === " ") this.play(!this.playing);
    else if (e.key === "PageUp") this.seek(this.at + tenth);
    else if (e.key === "PageDown") this.seek(this.at - tenth);
    else if (e.key === "Home") this.seek(this.file.first);
    else if (e.key === "End") this.seek(this.file.last);
    else return;
    e.preventDefault();
  }

  // seek moves to a time. settled says that the time stays.
  seek(at, settled = true) {
    this.at = Math.round(Math.min(Math.max(at, this.file.first), this.file.last));
    this.began = null;
    this.paint();
    this.moved(this.at, this.playing);
    if (settled) this.settle();
  }

  // settle keeps the time in the URL, for a reload or a link.
  settle() {
    const url = new URL(location.href);
    url.searchParams.set("at", this.at);
    history.replaceState(null, "", url);
  }

  paint() {
    this.slider.value = this.at - this.file.first;
    attr(this.slider, "aria-valuetext", `${clock(this.at)}, ${duration((this.at - this.file.first) / 1e6)} after the beginning`);
    text(this.shown, clock(this.at));
    text(this.day, date(this.at));
    text(this.passed, `${duration((this.at - this.file.first) / 1e6)} of ${duration((this.file.last - this.file.first) / 1e6)}`);
    const x = ((this.at - this.file.first) / (this.file.last - this.file.first)) * 1000;
    attr(this.cursor, "x1", x);
    attr(this.cursor, "x2", x);
  }

  // step moves to the next change. One step follows the other, also while a key is held. An error is shown and does not
  // end the chain.
  step(by) {
    this.stepping = (this.stepping ?? Promise.resolve()).then(() => this.stepOnce(by));
  }

  async stepOnce(by) {
    try {
      if (this.playing) this.play(false);
      const [, view, informer, key] = location.hash.split("/").map(decode);
      const query = new URLSearchParams({ at: this.at, by, ...(view === "object" && informer && key && { informer, key }) });
      this.seek((await get(`step?${query}`)).at);
    } catch (err) {
      offline(err);
    }
  }

  play(yes) {
    if (yes && this.at >= this.file.last) this.at = this.file.first;
    this.playing = yes;
    this.began = null;
    text(this.button, yes ? "Pause" : "Play");
    if (yes) this.frame();
    else {
      this.moved(this.at, false);
      this.settle();
    }
  }

  async frame() {
    if (!this.playing) return;
    const now = performance.now();
    if (this.began !== null && !document.hidden) this.at = Math.min(this.file.last, Math.round(this.at + (now - this.began) * 1000 * Number(this.speed.value)));
    this.began = now;
    this.paint();
    await this.moved(this.at, true);
    if (this.at >= this.file.last) this.play(false);
    else setTimeout(() => this.frame(), FRAME);
  }
}

// strip draws how many changes each part of the time has, and the parts that cannot be read.
function strip(file) {
  const ns = "http://www.w3.org/2000/svg";
  const make = (tag, attributes) => {
    const node = document.createElementNS(ns, tag);
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    return node;
  };
  const node = make("svg", { viewBox: "0 0 1000 20", preserveAspectRatio: "none", class: "strip", role: "img" });
  node.setAttribute("aria-label", `${plural(file.changes, "change")} in ${duration((file.last - file.first) / 1e6)}`);
  const most = Math.max(1, ...file.strip), width = 1000 / file.strip.length;
  file.strip.forEach((n, i) => {
    const height = n === 0 ? 0 : 3 + (17 * Math.log1p(n)) / Math.log1p(most);
    if (n > 0) node.append(make("rect", { x: i * width, y: 20 - height, width: Math.max(1, width - 0.6), height }));
  });
  const x = (at) => ((at - file.first) / (file.last - file.first)) * 1000;
  for (const p of file.problems) {
    const from = x(p.from || file.first), to = x(p.to || file.last);
    node.append(make("rect", { x: Math.min(from, 994), y: 0, width: Math.max(6, to - from), height: 20, class: "gap" }));
  }
  node.append(make("line", { x1: 0, x2: 0, y1: 0, y2: 20 }));
  return node;
}

// activity says what the streams of a scope did.
function activity(s) {
  if (!s.started) return ["idle", "not requested yet"];
  if (s.code) return ["bad", `refused with ${s.code}`];
  if (s.activity) return [s.synced ? "ok" : "wait", s.activity === "listing" && s.synced ? "lists again" : s.activity];
  const ends = { ended: "the server ended it", closed: "the client closed it", broken: "the connection broke", lost: "the recorder lost the rest" };
  return [s.ended === "broken" || s.ended === "lost" ? "bad" : "wait", s.ended ? `no request; ${ends[s.ended]}` : "no request"];
}

const defs = [
  {
    title: "Rates", unit: "a second", format: rate,
    series: [
      { label: "events", from: (p) => p.events, colour: "--blue" },
      { label: "changes", from: (p) => p.changes, colour: "--green" },
      { label: "refused requests", from: (p) => p.failed, colour: "--red" },
    ],
  },
  { title: "Cache", unit: "objects of all resources", format: number, series: [{ label: "objects", from: (p) => p.objects, colour: "--blue" }] },
  { title: "Received", unit: "KiB a second", format: rate, series: [{ label: "bytes of answers", from: (p) => (p.bytes === null ? null : p.bytes / 1024), colour: "--green" }] },
];

// Moment is what the client knew at a time.
class Moment {
  constructor(root, file) {
    this.file = file;
    const stage = (title, unit) => {
      const s = { dot: el("i", { className: "dot", "aria-hidden": "true" }), value: el("b", { className: "big" }, "–"), note: el("p", { className: "note" }) };
      s.node = el("li", { className: "stage" }, el("h3", {}, s.dot, title), el("p", { className: "figure" }, s.value, " ", el("span", { className: "unit" }, unit)), s.note);
      return s;
    };
    this.stages = [stage("Streams", "open"), stage("Events", "a second"), stage("Received", "a second"), stage("Changes", "a second"), stage("Cache", "objects"), stage("Requests", "so far")];
    const body = el("tbody");
    const heads = ["Collection", "Stream", "Objects", "Version", "Heard", "Events/s", "Events", "Lists", "Watches", "Refused"];
    this.scopes = new Rows(body, (s) => s.name, () => new ScopeRow());
    const latest = el("tbody");
    this.latest = new Rows(latest, (c) => `${c.resource} ${c.key} ${c.version} ${c.type}`, (c) => ({
      node: el("tr", {}, el("td", {}, clock(c.at)), el("td", {}, c.type), el("td", {}, c.resource), el("td", {}, el("a", { className: "key", href: objectLink(c.resource, c.key) }, c.key)), el("td", { className: "num" }, c.version)),
    }));
    this.none = el("p", { className: "hint", hidden: true }, "Nothing has changed yet.");
    const charts = el("div", { className: "charts" });
    const table = (id, title, className, head, numbers, body, more) => el("section", { "aria-labelledby": id }, el("h2", { id }, title),
      el("div", { className: "panel table-wrap", role: "region", "aria-labelledby": id, tabIndex: 0 }, el("table", { className, "aria-labelledby": id },
        el("thead", {}, el("tr", {}, ...head.map((h, i) => el("th", { scope: "col", className: numbers(i) ? "num" : "" }, h)))), body), more));
    root.append(el("h1", { className: "visually-hidden" }, "Moment"), el("section", { "aria-label": "Totals at this moment" }, el("h2", { className: "visually-hidden" }, "Totals"), el("ol", { className: "pipeline panel" }, ...this.stages.map((s) => s.node))), charts,
      table("scopes-title", "What the client followed", "informers", heads, (i) => i >= 2, body, null),
      table("latest-title", "Latest changes", "changes", ["Time", "Change", "Resource", "Object", "Version"], (i) => i === 4, latest, this.none));
    this.parent = charts;
  }

  set(n, value, note, state) {
    text(this.stages[n].value, value);
    text(this.stages[n].note, note);
    attr(this.stages[n].dot, "data-state", state);
  }

  update(s) {
    this.plots ??= new Charts(this.parent, defs, 0);
    this.plots.update(s.points.map((p) => (p.at * 1e6 < this.file.first ? { at: p.at, events: null, changes: null, failed: null, objects: null, bytes: null } : p)));
    const states = s.scopes.map(activity);
    const open = s.scopes.filter((x) => x.activity).length;
    const unsynced = s.scopes.filter((x) => x.started && !x.synced).length;
    this.set(0, `${number(open)} / ${number(s.scopes.length)}`, states.find((x) => x[0] === "bad")?.[1] ?? "", states.some((x) => x[0] === "bad") ? "bad" : open > 0 ? "ok" : "wait");
    this.set(1, number(s.second.events), `${plural(s.total.events, "event")} so far`, "ok");
    this.set(2, bytes(s.second.bytes), `${bytes(s.total.bytes)} so far`, "ok");
    this.set(3, number(s.second.changes), `${plural(s.total.changes, "change")} so far`, "ok");
    this.set(4, number(s.total.objects), unsynced ? `${unsynced} not synced` : "", unsynced ? "wait" : "ok");
    this.set(5, number(s.total.requests), s.total.failed ? `${number(s.total.failed)} refused` : "none refused", s.total.failed ? "wait" : "ok");
    this.scopes.update(s.scopes, s.at);
    this.latest.update(s.latest);
    show(this.none, s.latest.length === 0);
  }
}

class ScopeRow {
  constructor() {
    this.dot = el("i", { className: "dot", "aria-hidden": "true" });
    this.name = el("span");
    this.cells = Array.from({ length: 9 }, (_, n) => el("td", { className: n >= 1 ? "num" : "" }));
    this.node = el("tr", {}, el("th", { scope: "row" }, el("span", { className: "collection" }, this.dot, this.name)), ...this.cells);
  }

  update(s, at) {
    const [state, what] = activity(s);
    attr(this.dot, "data-state", state);
    attr(this.node, "data-state", state);
    attr(this.cells[0], "class", `state-${state}`);
    text(this.name, s.name);
    const values = [
      what, s.synced ? number(s.objects) : "–", s.version || "–", s.started ? `${duration((at - s.heardAt) / 1e6)} before` : "–", number(s.second), `${number(s.events)}${s.bookmarks ? ` + ${plural(s.bookmarks, "bookmark")}` : ""}`,
      `${number(s.lists)}${s.watchLists ? ` + ${plural(s.watchLists, "WatchList")}` : ""}`, number(s.watches), number(s.failed),
    ];
    values.forEach((v, n) => text(this.cells[n], v));
  }
}

function offline(err) {
  text($("offline"), `The moment cannot be shown: ${err.message}`);
  show($("offline"), true);
}

// show what cannot be read, and what the file does not have.
function tellProblems(file) {
  const all = [...file.problems.map((p) => p.text), ...file.notes];
  if (!file.ended && file.problems.length === 0) all.push("The file has no end: the recorder was killed, or still runs.");
  if (all.length > 0) $("offline").after(el("div", { id: "problems", className: "offline", role: "alert" }, el("p", {}, file.problems.length ? "A part of the file cannot be read. The rest is shown." : "The recording is not complete."), el("ul", {}, ...all.map((t) => el("li", {}, t)))));
}

async function begin() {
  const file = await get("recording");
  text($("program"), file.name);
  document.title = `${file.name} · leat`;
  tellProblems(file);
  text($("about"), PROVENANCE);
  let latest = null, transport;
  const views = new Views({ moment: "Moment", object: "One object" }, () => latest && views.update(latest));
  const object = new OneObject($("object"), { at: () => transport.at, clock });

  // load shows a time. While an answer is on its way, only the newest time counts.
  let wanted = null, loading = null;
  const load = async (at, playing) => {
    wanted = { at, playing };
    loading ??= (async () => {
      while (wanted) {
        const { at, playing } = wanted;
        wanted = null;
        try {
          latest = await get(`state?at=${at}`);
          show($("offline"), false);
          views.update(latest);
          if (views.shown === "object") await object.moved();
          if (!playing) announce(at, latest);
        } catch (err) {
          offline(err);
        }
      }
      loading = null;
    })();
    await loading;
  };
  const announce = (at, s) => {
    const c = s.latest[0];
    const change = c ? `${c.type} ${c.resource} ${c.key}` : "nothing yet";
    text($("announce"), `${clock(at)}, ${number(s.changes)} changes so far, the last is ${change}`);
  };
  transport = new Transport(document.querySelector("header"), file, load);
  const asked = Number(new URLSearchParams(location.search).get("at"));
  transport.seek(asked || file.last, false);
  views.begin({ moment: new Moment($("moment"), file), object });
}

begin().catch(offline);
