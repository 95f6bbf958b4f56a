// The view Lab: a walkthrough, buttons that change the program, and the pipeline to watch the effect. Only programs for
// experiments have actions.
import { el, text, attr, show, Rows, duration } from "./dom.js";
import { Live, Pipeline } from "./live.js";
import { Walkthrough, send } from "./walkthrough.js";

export class Lab {
  constructor(root, samples) {
    this.samples = samples;
    this.pipeline = new Pipeline();
    this.helper = new Live(document.createElement("div"), samples); // it knows which handlers are slow
    const held = el("ol", { className: "held-list" });
    this.held = new Rows(held, (h) => `${h.since} ${h.what}`, (h) => {
      const since = el("span", { className: "muted num" });
      return { node: el("li", {}, el("span", {}, h.what), since), update: (h, now) => text(since, duration((now - h.since) / 1000)) };
    });
    this.heldPanel = el("section", { className: "panel pad", "aria-labelledby": "held-title", hidden: true },
      el("h2", { id: "held-title" }, "Held back, the next one first"), held);
    this.walkthrough = new Walkthrough();
    this.groups = el("div", { className: "cards" });
    this.log = el("ol", { className: "panel pad lab-log", "aria-label": "What the buttons did", "aria-live": "polite" });
    this.error = el("p", { className: "error-text", role: "alert", hidden: true });
    root.append(el("h1", { className: "visually-hidden" }, "Lab"), this.pipeline.node, this.heldPanel, this.walkthrough.node, this.error, this.groups, this.log);
  }

  async enter() {
    this.walkthrough.look();
    if (this.entered) return;
    this.entered = true;
    try {
      const answer = await fetch("actions");
      const actions = await answer.json();
      if (!answer.ok) throw new Error(actions.error);
      const groups = new Map();
      for (const a of actions) groups.set(a.group, [...(groups.get(a.group) ?? []), a]);
      for (const [title, some] of groups) {
        this.groups.append(el("article", { className: "panel card" }, el("h2", {}, title), ...some.map((a) => this.action(a))));
      }
      show(this.error, false);
    } catch (err) {
      this.entered = false; // the next visit tries again
      show(this.error, true);
      text(this.error, err.message);
    }
  }

  action(a) {
    const inputs = a.fields.map((f) => el("input", { name: f.name, value: f.value, autocomplete: "off", spellcheck: false }));
    const help = el("p", { className: "muted", id: `help-${a.name}` }, a.help);
    const button = el("button", { type: "submit", "data-action": a.name, "aria-describedby": help.id }, a.label);
    const said = el("p", { className: "said", hidden: true });
    const form = el("form", { className: "action", "aria-label": a.label }, button, ...a.fields.map((f, i) => el("label", {}, el("span", { className: "muted" }, f.label), inputs[i])), help, said);
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      if (button.getAttribute("aria-busy")) return;
      attr(button, "aria-busy", "true");
      let [message, ok] = ["", true];
      try {
        message = (await send(`actions/${encodeURIComponent(a.name)}`, Object.fromEntries(inputs.map((i) => [i.name, i.value])))).said || "done";
      } catch (err) {
        [message, ok] = [err.message, false];
      }
      attr(button, "aria-busy", null);
      show(said, true);
      said.classList.toggle("error-text", !ok);
      text(said, message);
      this.note(`${a.label}: ${message}`, ok);
    });
    return form;
  }

  note(message, ok) {
    this.log.prepend(el("li", { className: ok ? "" : "error-text" }, el("span", { className: "muted" }, `${new Date().toLocaleTimeString("en-GB")} `), message));
    while (this.log.children.length > 12) this.log.lastElementChild.remove();
  }

  update(s) {
    this.helper.note(s);
    this.pipeline.update(s, this.helper);
    show(this.heldPanel, s.held.length > 0);
    this.held.update(s.held, s.now);
    this.walkthrough.look();
  }
}
