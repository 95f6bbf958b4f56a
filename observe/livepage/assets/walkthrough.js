// A text in steps, beside what the program printed.
import { el, text, attr, show } from "./dom.js";

// send posts JSON and returns the answer's. An error has the text of the program.
export async function send(path, values) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values) });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

export class Walkthrough {
  constructor() {
    this.title = el("h2", { id: "walkthrough-title" });
    this.steps = el("ol", { className: "walk-steps", "aria-label": "Steps" });
    this.next = el("button", { type: "button", className: "primary", onclick: () => this.move("next") });
    this.restart = el("button", { type: "button", onclick: () => this.move("restart") }, "Begin again");
    this.heading = el("h3");
    this.text = el("div", { className: "prose" });
    this.printed = el("pre", { className: "printed", tabIndex: 0, role: "log", "aria-label": "What the program printed" });
    this.error = el("p", { className: "error-text", role: "alert", hidden: true });
    this.node = el("section", { className: "panel pad walk", "aria-labelledby": "walkthrough-title", hidden: true },
      el("div", { className: "title-row" }, this.title, el("div", { className: "buttons" }, this.restart, this.next)),
      this.steps, this.error,
      el("div", { className: "split" }, el("div", {}, this.heading, this.text), el("div", {}, el("h3", {}, "What the program printed"), this.printed)));
  }

  // look asks for the state again. The program may print later than the step returned.
  async look() {
    if (this.absent || this.busy) return;
    try {
      const answer = await fetch("walkthrough");
      if (answer.status === 204 || answer.status === 403) {
        this.absent = true;
        return;
      }
      const state = await answer.json();
      if (!answer.ok) throw new Error(state.error);
      if (!this.busy) this.render(state);
    } catch {
      // the page says that the program does not answer
    }
  }

  async move(to) {
    if (this.busy) return;
    this.busy = true;
    attr(this.next, "aria-busy", "true");
    try {
      const state = await send(`walkthrough/${to}`, {});
      show(this.error, false);
      this.render(state);
    } catch (err) {
      show(this.error, true);
      text(this.error, err.message);
    }
    attr(this.next, "aria-busy", null);
    this.busy = false;
  }

  render(s) {
    show(this.node, true);
    text(this.title, s.title);
    const ended = s.taken === s.steps.length;
    text(this.next, ended ? "That was all" : s.taken === 0 ? `Begin: ${s.steps[0].title}` : `Next: ${s.steps[s.taken].title}`);
    attr(this.next, "aria-disabled", ended ? "true" : null); // it keeps the focus
    show(this.restart, s.taken > 0);
    const shown = s.taken === 0 ? { title: "", text: "" } : s.steps[s.taken - 1];
    show(this.text.parentElement.parentElement, s.taken > 0);
    if (this.shown !== s.taken || this.steps.children.length !== s.steps.length) {
      this.shown = s.taken;
      this.steps.replaceChildren(...s.steps.map((step, n) => el("li", { "aria-current": n === s.taken - 1 ? "step" : "false", className: n < s.taken ? "taken" : "" }, step.title)));
      text(this.heading, shown.title);
      this.text.replaceChildren(...markdown(s.taken === 1 ? `${s.text}\n\n${shown.text}` : shown.text));
    }
    const lines = s.steps.slice(0, s.taken).map((step) => step.printed).join("");
    const before = this.printed.textContent;
    if (before !== lines) {
      if (lines.startsWith(before)) this.printed.append(lines.slice(before.length)); // a screen reader reads only new lines
      else text(this.printed, lines);
      this.printed.scrollTop = this.printed.scrollHeight;
    }
  }
}

// markdown makes the elements of a text. It knows what Walkthrough in package livepage lists, and makes no link.
export function markdown(source) {
  const nodes = [];
  const lines = source.split("\n");
  for (let i = 0; i < lines.length; ) {
    const line = lines[i];
    const item = /^(\d+\.|-) /.exec(line);
    if (line.startsWith("```")) {
      const end = lines.findIndex((l, n) => n > i && l.startsWith("```"));
      const code = lines.slice(i + 1, end < 0 ? lines.length : end);
      nodes.push(el("pre", {}, code.join("\n")));
      i += code.length + 2;
    } else if (item) {
      const items = [];
      for (; i < lines.length && (/^(\d+\.|-) /.test(lines[i]) || /^ +\S/.test(lines[i])); i++) {
        if (/^ /.test(lines[i])) items[items.length - 1] += ` ${lines[i].trim()}`;
        else items.push(lines[i].replace(/^(\d+\.|-) /, ""));
      }
      nodes.push(el(item[1] === "-" ? "ul" : "ol", {}, ...items.map((text) => el("li", {}, ...inline(text)))));
    } else if (line.trim() === "") i++;
    else {
      const start = i;
      while (i < lines.length && lines[i].trim() !== "" && !lines[i].startsWith("```") && !(i > start && /^(\d+\.|-) /.test(lines[i]))) i++;
      nodes.push(el("p", {}, ...inline(lines.slice(start, i).join(" "))));
    }
  }
  return nodes;
}

// inline makes the parts of a line: code, strong, emphasis, and the text of links.
function inline(line) {
  const parts = [];
  let rest = line;
  const pattern = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^\]]+)\]\([^)]*\)/;
  for (let m = pattern.exec(rest); m; m = pattern.exec(rest)) {
    parts.push(rest.slice(0, m.index));
    if (m[1]) parts.push(el("code", {}, m[1]));
    else if (m[2]) parts.push(el("strong", {}, ...inline(m[2])));
    else if (m[3]) parts.push(el("em", {}, ...inline(m[3])));
    else parts.push(...inline(m[4]));
    rest = rest.slice(m.index + m[0].length);
  }
  return [...parts, rest];
}
