// The page polls one JSON document a second while it is visible, and shows it in one of three views.
import { el, text, attr, show, Rows, bytes, duration, plural } from "./dom.js";
import { Samples } from "./samples.js";
import { Live } from "./live.js";
import { OneObject } from "./object.js";
import { Lab } from "./lab.js";

const EVERY = 1000; // milliseconds between two polls
const $ = (id) => document.getElementById(id);

const samples = new Samples();
const views = { live: new Live($("live"), samples), object: new OneObject($("object")), lab: new Lab($("lab"), samples) };
const badges = new Rows($("badges"), (b) => b.name, () => {
  const dot = el("i", { className: "dot", "aria-hidden": "true" });
  const label = el("span");
  const node = el("li", { className: "badge" }, dot, label);
  return {
    node,
    update(b) {
      attr(dot, "data-state", b.state);
      text(label, b.text);
      attr(node, "title", b.title || null);
    },
  };
});

let view = "live";
let timer = 0;
let failedSince = 0;
let said = "";

function route() {
  const [, name] = location.hash.split("/");
  views[view].leave?.();
  view = views[name] ? name : "live";
  for (const section of document.querySelectorAll(".view")) show(section, section.id === view);
  for (const link of document.querySelectorAll("nav a")) {
    attr(link, "aria-current", link.dataset.view === view ? "page" : null);
  }
  views[view].enter?.(location.hash);
  if (samples.latest) render();
}

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
  show(document.querySelector('nav a[data-view="object"]'), s.debug);
  show(document.querySelector('nav a[data-view="lab"]'), s.lab);
  document.title = `${view === "live" ? "" : `${document.querySelector("nav a[aria-current]").textContent} · `}${s.program} · leat`;
  badges.update(badgesOf(s));
  text($("process"), `up ${duration((s.now - s.started) / 1000)} · heap ${bytes(s.heap)} · ${plural(s.goroutines, "goroutine")}`);
  views[view].update(s);
  announce(s);
}

function badgesOf(s) {
  const all = [];
  if (s.leader) {
    const l = s.leader;
    all.push({
      name: "leader", state: l.leads ? "ok" : "wait",
      text: s.electors.length > 1 ? (l.leads ? `${l.identity || "one"} leads, ${s.electors.length} replicas` : `no leader, ${s.electors.length} replicas`)
        : l.election ? (l.leads ? "leads" : l.leader ? `follows ${l.leader}` : "does not lead") : l.leads ? "leads, no election" : "starting",
      title: l.lease ? `lease ${l.lease}, this replica is ${l.identity}` : "",
    });
  }
  for (const h of s.health) {
    const failed = h.checks.filter((c) => !c.ok);
    all.push({
      name: h.path, state: h.ok ? "ok" : "bad", text: failed.length ? `${h.path}: ${failed.map((c) => c.name).join(", ")}` : h.path,
      title: h.checks.map((c) => `${c.ok ? "✓" : "✗"} ${c.name} ${c.text ?? ""}`).join("\n"),
    });
  }
  return all;
}

// announce tells screen readers what changed about the state, and nothing else.
function announce(s) {
  const unsynced = s.informers.filter((i) => !i.synced).map((i) => i.name);
  const failing = s.informers.filter((i) => i.failing).map((i) => i.name);
  const stuck = s.informers.flatMap((i) => i.handlers.filter((h) => h.stuckSince > 0).map((h) => h.name));
  const health = s.health.filter((h) => !h.ok).map((h) => h.path);
  const parts = [];
  if (unsynced.length) parts.push(`not synced: ${unsynced.join(", ")}`);
  if (failing.length) parts.push(`failing: ${failing.join(", ")}`);
  if (stuck.length) parts.push(`stuck handlers: ${stuck.join(", ")}`);
  if (health.length) parts.push(`failing checks: ${health.join(", ")}`);
  if (s.electors.length && !s.leader.leads) parts.push("does not lead");
  const now = parts.join("; ") || "everything is synced and healthy";
  if (now !== said) text($("announce"), now);
  said = now;
}

document.querySelector(".skip").addEventListener("click", (e) => {
  e.preventDefault(); // its hash is not that of a view
  $("main").focus();
});
addEventListener("hashchange", route);
document.addEventListener("visibilitychange", poll);
route();
poll();
