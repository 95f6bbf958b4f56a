// The page polls one JSON document a second while it is visible, and shows it in one of three views.
import { el, text, attr, show, Rows, bytes, duration, plural } from "./dom.js";
import { $, Views } from "./views.js";
import { Tip } from "./tip.js";
import { Samples } from "./samples.js";
import { Live } from "./live.js";
import { OneObject } from "./object.js";
import { Lab } from "./lab.js";

const EVERY = 1000; // milliseconds between two polls

const samples = new Samples();
const views = new Views({ live: "Live", object: "One object", lab: "Lab" }, () => samples.latest && render());
const link = (name) => document.querySelector(`nav a[data-view="${name}"]`);
const badgeList = el("ul", { className: "badges", id: "badges", "aria-label": "State of the program" });
document.querySelector("header").append(badgeList);
const badges = new Rows(badgeList, (b) => `${b.name} ${b.more !== ""}`, (b) => {
  const dot = el("i", { className: "dot", "aria-hidden": "true" });
  const label = el("span");
  const node = el("li", { className: "badge" });
  const tip = b.more ? new Tip(node, dot, label) : null;
  if (!tip) node.append(dot, label);
  return {
    node,
    update(b) {
      attr(dot, "data-state", b.state);
      text(label, b.text);
      tip?.set(b.more);
    },
  };
});

let timer = 0;
let failedSince = 0;
let said = "";

async function poll() {
  clearTimeout(timer);
  if (document.hidden) return; // nobody looks, so the program is left alone
  try {
    const answer = await fetch("state", { signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    samples.add(await answer.json());
    failedSince = 0;
    render();
  } catch (err) {
    failedSince ||= Date.now();
    text($("offline"), `The program does not answer since ${new Date(failedSince).toLocaleTimeString()}: ${err.message}`);
  }
  show($("offline"), failedSince > 0);
  document.body.classList.toggle("stale", failedSince > 0);
  timer = setTimeout(poll, EVERY);
}

function render() {
  const s = samples.latest;
  text($("program"), s.program);
  show(link("object"), s.debug);
  show(link("lab"), s.lab);
  document.title = `${views.shown === "live" ? "" : `${views.titles[views.shown]} · `}${s.program} · leat`;
  badges.update(badgesOf(s));
  text($("about"), `up ${duration((s.now - s.started) / 1000)} · heap ${bytes(s.heap)} · ${plural(s.goroutines, "goroutine")}`);
  views.update(s);
  announce(s);
}

function badgesOf(s) {
  const all = [];
  if (s.leader) {
    const l = s.leader;
    all.push({
      name: "leader", state: l.error ? "bad" : l.leads ? "ok" : "wait",
      text: s.electors.length > 1 ? (l.leads ? `${l.identity || "one"} leads, ${s.electors.length} replicas` : `no leader, ${s.electors.length} replicas`)
        : l.election ? (l.leads ? "leads" : l.leader ? `follows ${l.leader}` : "does not lead") : l.leads ? "leads, no election" : "starting",
      more: l.lease ? `lease ${l.lease}, this replica is ${l.identity}${l.error ? `\nthe last attempt failed: ${l.error}` : ""}` : "",
    });
  }
  for (const h of s.health) {
    const failed = h.checks.filter((c) => !c.ok);
    all.push({
      name: h.path, state: h.ok ? "ok" : "bad", text: failed.length ? `${h.path}: ${failed.map((c) => c.name).join(", ")}` : h.path,
      more: h.checks.map((c) => `${c.ok ? "✓" : "✗"} ${c.name} ${c.text ?? ""}`.trim()).join("\n"),
    });
  }
  return all;
}

// announce tells screen readers what changed about the state, and nothing else. The state must last for two answers:
// an informer that fails and recovers every second is no news.
function announce(s) {
  const unsynced = s.informers.filter((i) => !i.synced).map((i) => i.name);
  const failing = s.informers.filter((i) => i.failing).map((i) => i.name);
  const stuck = s.informers.flatMap((i) => i.handlers.filter((h) => h.stuckSince > 0).map((h) => h.name));
  const health = s.health.filter((h) => !h.ok).map((h) => h.path);
  const names = (all, noun) => (all.length > 3 ? plural(all.length, noun) : all.join(", "));
  const parts = [];
  if (unsynced.length) parts.push(`not synced: ${names(unsynced, "informer")}`);
  if (failing.length) parts.push(`failing: ${names(failing, "informer")}`);
  if (stuck.length) parts.push(`stuck: ${names(stuck, "handler")}`);
  if (health.length) parts.push(`failing checks: ${health.join(", ")}`);
  if (s.electors.length && !s.leader.leads) parts.push("does not lead");
  const now = parts.join("; ") || "everything is synced and healthy";
  if (now === said) text($("announce"), now);
  said = now;
}

show(link("object"), false);
show(link("lab"), false);
document.addEventListener("visibilitychange", poll);
views.begin({ live: new Live($("live"), samples), object: new OneObject($("object")), lab: new Lab($("lab"), samples) });
poll();
