// The view One object: its states with what changed, the way of each change through the stages, and its reconciles.
import { el, text, attr, show, Rows, duration, ago, plural } from "./dom.js";

const EVERY = 1000;

export const objectLink = (informer, key) => `#/object/${encodeURIComponent(informer)}/${encodeURIComponent(key)}`;

// decode reads a part of the hash. Somebody may have typed it, so it may have a lone %.
export function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// micros reads a time of Go in RFC 3339, to the microsecond. Date has milliseconds only.
function micros(text) {
  if (!text || text.startsWith("0001-")) return 0;
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? "";
  return Date.parse(text.replace(/\.\d+/, "")) * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
}

// flatten returns the leaves of an object by path.
function flatten(value, path = "", into = new Map()) {
  if (value !== null && typeof value === "object" && Object.keys(value).length > 0) {
    for (const [k, v] of Object.entries(value)) flatten(v, Array.isArray(value) ? `${path}[${k}]` : path ? `${path}.${k}` : k, into);
  } else into.set(path, JSON.stringify(value));
  return into;
}

// difference lists the leaves that differ: [path, before, after].
function difference(before, after) {
  const a = flatten(before ?? {}), b = flatten(after ?? {});
  const paths = [...new Set([...a.keys(), ...b.keys()])].filter((p) => p !== "").sort();
  return paths.filter((p) => a.get(p) !== b.get(p)).map((p) => [p, a.get(p), b.get(p)]);
}

const states = { success: "ok", requeue_after: "wait", error: "bad", terminal: "bad", dropped: "bad", cancelled: "idle" };
const outcomes = { success: "succeeded", requeue_after: "requeued", error: "failed", terminal: "failed for good", dropped: "dropped", cancelled: "cancelled" };

// past is set on the page of a recording: {at, clock}, which return the moment in microseconds, and format a time. A
// recording has no reconciles, and nothing happens without a move of the time.
export class OneObject {
  constructor(root, past = null) {
    this.past = past;
    this.search = el("input", { type: "search", id: "find", placeholder: "namespace/name, or a part of it", autocomplete: "off", spellcheck: false, oninput: () => this.find() });
    this.results = el("ul", { className: "results", "aria-label": "Found objects" });
    this.found = new Rows(this.results, (f) => `${f.informer} ${f.key}`, (f) => {
      const where = el("span", { className: "muted" });
      return { node: el("li", {}, el("a", { href: objectLink(f.informer, f.key), className: "key" }, f.key), where), update: (f) => text(where, `${f.informer}${f.gone ? ", not at this moment" : ""}`) };
    });
    this.count = el("p", { className: "muted", role: "status" });
    this.dot = el("i", { className: "dot", "aria-hidden": "true" });
    this.title = el("h2");
    this.where = el("span", { className: "muted" });
    this.pin = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.togglePin() }, "Pin");
    this.error = el("p", { className: "error-text", role: "alert", hidden: true });
    this.axis = el("div", { className: "axis" });
    this.caption = el("p", { className: "muted caption" });
    const versions = el("ol", { className: "versions" });
    this.versions = new Rows(versions, (v) => v.sequence, (v) => {
      const button = el("button", { type: "button", onclick: () => this.select(v.sequence) });
      return {
        node: el("li", {}, button),
        update: (v) => {
          attr(button, "aria-current", v.sequence === this.shown ? "true" : null);
          const when = past ? past.clock(v.stored) : ago((this.state.now - v.stored) / 1e6);
          text(button, [v.type, `version ${v.version}`, when, v.compared ? plural(v.changes.length, "field") : ""].filter(Boolean).join(" · "));
        },
      };
    });
    this.bounds = el("p", { className: "muted bounds", hidden: true });
    this.journey = el("div", { className: "journey" });
    this.diff = el("tbody");
    this.diffNote = el("p", { className: "muted", hidden: true });
    this.reconcileBody = el("tbody");
    this.none = el("p", { className: "hint", hidden: true }, "No controller has reconciled this object, or an object that it owns or names, since the program started.");
    this.reconciles = new Rows(this.reconcileBody, (r) => r.ID, () => new ReconcileRow());
    this.body = el("div", { className: "object-body", hidden: true },
      el("header", { className: "title-row" }, el("div", { className: "object-title" }, this.dot, this.title, this.where), past ? null : this.pin),
      el("section", { className: "panel pad", "aria-label": "Time axis" }, this.axis, this.caption),
      el("div", { className: "split" },
        el("section", { className: "panel pad", "aria-labelledby": "versions-title" }, el("h3", { id: "versions-title" }, "States, newest first"), this.bounds, versions),
        el("section", { className: "panel pad", "aria-labelledby": "journey-title" }, el("h3", { id: "journey-title" }, "Journey of this change"), this.journey,
          el("h3", {}, "Changed fields"), this.diffNote,
          el("div", { className: "table-wrap", tabIndex: 0, role: "region", "aria-label": "Changed fields" }, el("table", { className: "diff", "aria-label": "Changed fields" }, el("thead", {}, el("tr", {}, ...["Field", "Before", "After"].map((h) => el("th", { scope: "col" }, h)))), this.diff)))),
      past ? null : el("section", { "aria-labelledby": "reconciles-title" }, el("h2", { id: "reconciles-title" }, "Reconciles, newest first"),
        el("div", { className: "panel table-wrap", tabIndex: 0, role: "region", "aria-labelledby": "reconciles-title" }, el("table", { "aria-labelledby": "reconciles-title" }, el("thead", {}, el("tr", {}, ...["Started", "Key", "Outcome", "Took", "Waited", "Attempt", "Causes", "Next"].map((h, n) => el("th", { scope: "col", className: [3, 4, 5].includes(n) ? "num" : "" }, h)))), this.reconcileBody), this.none)));
    root.append(el("h1", { className: "visually-hidden" }, "One object"),
      el("div", { className: "finder" }, el("label", { htmlFor: "find" }, "Find an object"), this.search, this.count), this.results, this.error, this.body);
  }

  enter(hash) {
    const [, , informer, key] = hash.split("/").map(decode);
    clearTimeout(this.timer);
    this.at = informer && key ? { informer, key } : null;
    this.all = [];
    this.state = null;
    this.shown = null;
    this.pointed = null; // the reconcile that the caption of the axis describes; null for the selected state
    this.refused = false; // the error says why a pin was refused, until the next attempt
    show(this.body, false);
    show(this.error, false);
    show(this.results, !this.at);
    if (this.at) this.poll(this.at);
    else {
      this.find();
      this.search.focus();
    }
  }

  leave() { clearTimeout(this.timer); }

  update() {}

  // moved shows the object, or the search, at another time of a recording.
  async moved() {
    if (this.at) await this.poll(this.at);
    else await this.find();
  }

  async find() {
    show(this.results, true);
    const wanted = this.search.value;
    let found;
    try {
      const answer = await fetch(`keys?${new URLSearchParams({ q: wanted, ...(this.past && { at: this.past.at() }) })}`, { signal: AbortSignal.timeout(10000) });
      found = await answer.json();
      if (!answer.ok) throw new Error(found.error);
    } catch (err) {
      return this.fail(err.message);
    }
    if (wanted !== this.search.value) return;
    this.found.update(found);
    text(this.count, found.length === 0 ? "no object has this text in its key" : found.length === 50 ? "50 of the objects; a longer part finds fewer" : plural(found.length, "object"));
  }

  fail(message) {
    show(this.error, true);
    text(this.error, message);
  }

  async poll(at) {
    clearTimeout(this.timer);
    if (at !== this.at) return;
    if (!document.hidden) {
      try {
        const query = new URLSearchParams({ ...at, after: this.all.at(-1)?.sequence ?? 0, ...(this.state && { began: this.state.began }), ...(this.past && { at: this.past.at() }) });
        const answer = await fetch(`object?${query}`, { signal: AbortSignal.timeout(10000) });
        const body = await answer.json();
        if (at !== this.at) return;
        if (answer.status === 404) this.lost();
        if (!answer.ok) throw new Error(body.error);
        show(this.error, this.refused);
        this.take(body);
      } catch (err) {
        if (at !== this.at) return; // its error is not of the object that the page shows now
        this.refused = false;
        this.fail(err.message); // an object that is missing now may be created
      }
    }
    clearTimeout(this.timer); // of a poll that ran at the same time
    if (!this.past) this.timer = setTimeout(() => this.poll(at), EVERY);
  }

  // lost says that what is shown is old: the program began again without the object, or has no such informer any more.
  lost() {
    attr(this.dot, "data-state", "idle");
    text(this.where, `${this.at.informer} · no longer followed`);
  }

  take(body) {
    if (this.state && body.began !== this.state.began) { // the program forgot the object or restarted
      this.all = [];
      this.shown = null;
    }
    for (const v of body.versions) {
      const last = this.all.at(-1);
      if (last && v.sequence <= last.sequence) continue; // two polls at once
      if (last?.type === "Cached" && (last.version === v.version || v.earlier)) this.all.pop();
      const before = this.all.at(-1);
      v.compared = v.type === "Updated" && Boolean(before?.object && v.object);
      v.changes = v.compared ? difference(before.object, v.object) : [];
      this.all.push(v);
    }
    this.all = this.all.slice(-32);
    const follows = this.shown === null || this.shown === this.state?.newest;
    this.state = { ...body, newest: this.all.at(-1)?.sequence };
    if (follows || !this.all.some((v) => v.sequence === this.shown)) this.shown = this.state.newest;
    show(this.body, true);
    attr(this.dot, "data-state", body.working.some((w) => w.Running) ? "wait" : body.cached ? "ok" : "idle");
    text(this.title, body.key);
    const work = body.working.map((w) => (w.Running ? `${w.Controller} is at work` : `the gate of ${w.Controller} holds it back`)).join(", ");
    text(this.where, [body.informer, body.cached ? "cached" : this.past && body.versions.length === 0 ? "not known yet" : "deleted", work].filter(Boolean).join(" · "));
    attr(this.pin, "aria-pressed", String(body.pinned));
    text(this.pin, body.pinned ? "Pinned" : "Pin");
    show(this.bounds, body.earlier > 0 || body.later > 0);
    text(this.bounds, [body.earlier > 0 ? `${plural(body.earlier, "state")} before these` : "", body.later > 0 ? `${plural(body.later, "state")} after this moment` : ""].filter(Boolean).join(", "));
    this.render();
  }

  select(sequence) {
    this.shown = sequence;
    this.pointed = null;
    this.render();
  }

  render() {
    const s = this.state;
    this.versions.update([...this.all].reverse());
    this.reconciles.update([...s.reconciles].reverse(), s);
    show(this.none, s.reconciles.length === 0);
    const v = this.all.find((x) => x.sequence === this.shown);
    const point = (id) => {
      this.pointed = id;
      text(this.caption, this.describe(v));
    };
    this.axis.replaceChildren(overview(this.axis.clientWidth || 1000, this.all, s, v, (n) => this.select(n), point, this.past));
    text(this.caption, this.describe(v));
    if (!v) {
      this.journey.replaceChildren();
      this.diff.replaceChildren();
      return;
    }
    const handled = s.deliveries.filter((d) => d.version === v.version && d.type === v.type);
    const answers = s.reconciles.filter((r) => r.Causes?.some((c) => c.Object === s.key && c.Version === v.version));
    const before = this.all[this.all.indexOf(v) - 1];
    this.journey.replaceChildren(this.past ? received(v, before, this.past) : journey(v, handled, answers));
    const note = v.omitted || (v.type === "Listed" ? "The first list of the recording had this state." : v.type === "Cached" ? "The page began to follow the object with this state." : v.type === "Deleted" ? "The object was deleted. Its last state has the version above." : !before ? "The state before is not remembered." : v.changes.length === 0 ? "No field differs." : "");
    show(this.diffNote, note !== "");
    text(this.diffNote, note);
    this.diff.replaceChildren(...v.changes.map(([path, a, b]) => el("tr", {}, el("th", { scope: "row", className: "key" }, path),
      el("td", { className: "before" }, a ?? "–"), el("td", { className: "after" }, b ?? "–"))));
    show(this.diff.parentElement, v.changes.length > 0);
  }

  // describe says what the caption of the axis says: about a reconcile that somebody points at, or the selected state.
  describe(v) {
    const r = this.state.reconciles.find((x) => x.ID === this.pointed);
    if (r) return `Reconcile of ${r.Key} by ${r.Controller}, ${ago((this.state.now - micros(r.Started)) / 1e6)}: ${outcomes[r.Outcome] ?? r.Outcome}, took ${duration(r.Took / 1e9)}`;
    if (!v) return "";
    return `${v.type}, version ${v.version}, ${this.past ? this.past.clock(v.stored) : ago((this.state.now - v.stored) / 1e6)}`;
  }

  async togglePin() {
    try {
      const answer = await fetch(`pin?${new URLSearchParams(this.at)}`, { method: this.state.pinned ? "DELETE" : "POST" });
      if (!answer.ok) throw new Error((await answer.json()).error);
      this.refused = false;
    } catch (err) {
      this.refused = true;
      this.fail(err.message);
    }
    this.poll(this.at);
  }
}

const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
  node.append(...children);
  return node;
};

// received says what a recording has of the way of a change.
function received(v, before, past) {
  const since = before ? `, ${duration((v.received - before.received) / 1e6)} after the state before` : "";
  const how = v.type === "Listed" ? "The recorded client received it in its first list" : v.finalStateUnknown ? "A later list showed the deletion; the watch missed it" : "The recorded client received it";
  return el("p", {}, `${how} at ${past.clock(v.received)}${since}.`, el("br"), el("span", { className: "muted" }, "A recording does not have what the program did with it."));
}

// PRESS are the events that select a mark. Each answer draws the axis again, so a click may have no mark any more.
const PRESS = ["pointerdown", "click"];

// overview draws states and reconciles on one time axis. select gets the state of a mark that somebody selects, and
// point the reconcile of a bar. The lists below have the same for the keyboard.
function overview(W, versions, s, shown, select, point, past) {
  const H = past ? 56 : 84, left = 84, right = 10, ticks = W > 600 ? 4 : past ? 1 : 2;
  const times = [...versions.map((v) => v.stored), ...s.reconciles.map((r) => micros(r.Started))].filter(Boolean);
  const to = s.now, from = Math.min(to - (past ? 1e5 : 10e6), ...times);
  const x = (t) => left + ((t - from) / (to - from)) * (W - left - right);
  const g = svg("svg", { viewBox: `0 0 ${W} ${H}`, height: H, role: "img", "aria-label": `${plural(versions.length, "state")}${past ? "" : ` and ${plural(s.reconciles.length, "reconcile")}`} in the last ${duration((to - from) / 1e6)}`});
  for (const [y, label] of past ? [[20, "states"]] : [[20, "states"], [48, "reconciles"]]) {
    g.append(svg("line", { x1: left, x2: W - right, y1: y, y2: y, class: "lane" }), svg("text", { x: 0, y: y + 4, class: "tick" }, label));
  }
  for (let i = 0; i <= ticks; i++) {
    const t = from + ((to - from) * i) / ticks;
    g.append(svg("text", { x: x(t), y: H - 6, class: "tick", "text-anchor": i === 0 ? "start" : i === ticks ? "end" : "middle" }, past ? past.clock(t) : i === ticks ? "now" : ago((to - t) / 1e6)));
  }
  for (const r of s.reconciles) {
    const a = micros(r.Started), width = Math.max(3, x(a + r.Took / 1000) - x(a));
    const bar = svg("rect", { x: x(a) - 1, y: 41, width, height: 14, rx: 2, class: `bar ${states[r.Outcome] ?? "idle"}` });
    for (const event of ["pointerenter", ...PRESS]) bar.addEventListener(event, () => point(r.ID));
    g.append(bar);
  }
  for (const v of versions) {
    const mark = svg("circle", { cx: x(v.stored), cy: 20, r: v === shown ? 7 : 5, class: `mark ${v.type}${v === shown ? " shown" : ""}` });
    for (const event of PRESS) mark.addEventListener(event, () => select(v.sequence));
    g.append(mark);
  }
  return g;
}

// mostHandled limits the handlers in a journey. A program may have many.
const mostHandled = 6;

// journey draws the stages of one change, each with its time since the change was received. handled are the calls of
// handlers with it, and reconciles those that name it as a cause.
function journey(v, handled, reconciles) {
  if (v.type === "Cached") return el("p", { className: "muted" }, "The change happened before somebody looked.");
  const steps = [
    ["received", v.received, "the reflector received the event and put it into the DeltaFIFO"],
    ["popped", v.popped, "the informer took it from the DeltaFIFO, with its batch"],
    ["stored", v.stored, "the batch is in the cache, and handlers get it"],
    ...handled.slice(0, mostHandled).map((d) => ["handled", d.began, `${d.handler} got it, and took ${duration(d.took / 1e6)}`]),
  ];
  const r = reconciles[0];
  if (r) {
    const ready = micros(r.Ready) || micros(r.Added);
    const waited = ready < v.received; // an earlier event has added the key
    if (ready && !waited) steps.push(["added", ready, `a handler added ${r.Key} to the queue`]);
    steps.push(["reconcile starts", micros(r.Started), `a worker of ${r.Controller} took ${waited ? `${r.Key}, which was in the queue already` : "it"}`],
      ["reconcile ends", micros(r.Started) + r.Took / 1000, outcomes[r.Outcome] ?? r.Outcome]);
  }
  steps.sort((a, b) => a[1] - b[1]);
  const start = v.received, end = Math.max(steps.at(-1)[1], start + 1);
  const list = el("ol", { className: "steps" }, ...steps.map(([name, at, why], n) => {
    const bar = svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", class: "step-bar" });
    const from = n === 0 ? start : steps[n - 1][1];
    bar.append(svg("rect", { x: ((from - start) / (end - start)) * 99, y: 2, width: Math.max(1, ((at - from) / (end - start)) * 99), height: 6, class: n === 0 ? "bar" : "bar ok" }));
    return el("li", {}, el("b", {}, name), el("span", { className: "num" }, at === start ? "0" : `+${duration((at - start) / 1e6)}`), bar, el("span", { className: "muted" }, why));
  }));
  const more = handled.length - mostHandled;
  if (more > 0) list.append(el("li", { className: "muted" }, `${plural(more, "further handler")} got it too.`));
  if (!r) list.append(el("li", { className: "muted" }, "No reconcile names this version as a cause. It may have been merged with another event, or no predicate passed it."));
  return list;
}

class ReconcileRow {
  constructor() {
    this.dot = el("i", { className: "dot", "aria-hidden": "true" });
    this.outcome = el("span");
    this.cells = Array.from({ length: 8 }, (_, n) => el("td", { className: [3, 4, 5].includes(n) ? "num" : n === 6 ? "causes" : "" }));
    this.cells[2].append(this.dot, this.outcome);
    this.error = el("div", { className: "error-text" });
    this.cells[2].append(this.error);
    this.node = el("tr", {}, ...this.cells);
  }

  update(r, s) {
    attr(this.dot, "data-state", states[r.Outcome] ?? "idle");
    text(this.outcome, outcomes[r.Outcome] ?? r.Outcome);
    text(this.error, r.Err ?? "");
    const next = micros(r.Next), later = s.reconciles.find((x) => x.Controller === r.Controller && x.Key === r.Key && micros(x.Started) > micros(r.Started));
    const waited = micros(r.Ready) ? (micros(r.Started) - micros(r.Ready)) / 1e6 : null;
    const values = { 0: ago((s.now - micros(r.Started)) / 1e6), 1: `${r.Controller}: ${r.Key}`, 3: duration(r.Took / 1e9), 4: duration(waited), 5: r.Attempt,
      6: [...(r.Causes ?? []).map((c) => `${c.Source} ${c.Event} ${c.Object}${c.Version ? ` @${c.Version}` : ""}`), r.CausesOmitted ? `and ${r.CausesOmitted} more` : ""].filter(Boolean).join("\n"),
      7: !next ? "–" : later && micros(later.Started) < next ? "came earlier" : next > s.now ? `in ${duration((next - s.now) / 1e6)}` : "was due" };
    for (const [n, v] of Object.entries(values)) text(this.cells[n], v);
  }
}
