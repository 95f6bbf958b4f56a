// The view Lab: buttons that change the program, and the pipeline to watch the effect. Only programs for experiments
// have actions.
import { el, attr, show } from "./dom.js";
import { Live, Pipeline } from "./live.js";

export class Lab {
  constructor(root, samples) {
    this.samples = samples;
    this.pipeline = new Pipeline();
    this.helper = new Live(document.createElement("div"), samples); // it knows which handlers are slow
    this.groups = el("div", { className: "cards" });
    this.log = el("ol", { className: "panel pad lab-log", "aria-label": "What the buttons did", "aria-live": "polite", hidden: true });
    root.append(el("h1", { className: "visually-hidden" }, "Lab"), this.pipeline.node, this.groups, this.log);
  }

  async enter() {
    if (this.entered) return;
    this.entered = true;
    const answer = await fetch("actions");
    const groups = new Map();
    for (const a of await answer.json()) groups.set(a.group, [...(groups.get(a.group) ?? []), a]);
    for (const [title, actions] of groups) {
      this.groups.append(el("article", { className: "panel card" }, el("h2", {}, title), ...actions.map((a) => this.action(a))));
    }
  }

  action(a) {
    const inputs = a.fields.map((f) => el("input", { name: f.name, value: f.value, autocomplete: "off" }));
    const button = el("button", { type: "submit" }, a.label);
    const form = el("form", { className: "action" }, button, ...a.fields.map((f, i) => el("label", {}, el("span", { className: "muted" }, f.label), inputs[i])), el("p", { className: "muted" }, a.help));
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      attr(button, "aria-busy", "true");
      const values = Object.fromEntries(inputs.map((i) => [i.name, i.value]));
      try {
        const answer = await fetch(`actions/${encodeURIComponent(a.name)}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values) });
        const body = await answer.json();
        this.note(answer.ok ? `${a.label}: ${body.said || "done"}` : `${a.label}: ${body.error}`, answer.ok);
      } catch (err) {
        this.note(`${a.label}: ${err.message}`, false);
      }
      attr(button, "aria-busy", null);
    });
    return form;
  }

  note(message, ok) {
    show(this.log, true);
    const line = el("li", { className: ok ? "" : "error-text" }, el("span", { className: "muted" }, `${new Date().toLocaleTimeString()} `), message);
    this.log.prepend(line);
    while (this.log.children.length > 12) this.log.lastElementChild.remove();
  }

  update(s) {
    this.helper.noteBacklogs(s);
    this.pipeline.update(s, this.helper);
  }
}
