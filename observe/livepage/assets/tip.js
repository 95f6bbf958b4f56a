// A button with a text that it shows while it has the focus or the mouse, and after a tap.
import { el, text, show } from "./dom.js";

const LINGER = 300; // milliseconds in which the mouse can move from the button to the text
const MARGIN = 14; // pixels between the text and the edge of the window

let opened = null; // the one tip that is shown

// Tip shows its text below a button. A press of the button does not hide it: that would hide what the focus has shown.
// Escape hides it, and so does a press elsewhere. The button's name includes the text, because a screen reader does not
// see it appear.
export class Tip {
  // parent is the positioned element around the button and the text.
  constructor(parent, ...label) {
    this.spoken = el("span", { className: "visually-hidden" });
    this.button = el("button", { type: "button", className: "tip-button", onclick: () => this.open() }, ...label, this.spoken);
    this.text = el("p", { className: "tip", "aria-hidden": "true", hidden: true });
    this.parent = parent;
    parent.append(this.button, this.text);
    parent.addEventListener("mouseenter", () => this.open());
    parent.addEventListener("mouseleave", () => {
      this.timer = setTimeout(() => document.activeElement !== this.button && this.close(), LINGER);
    });
    parent.addEventListener("focusin", () => this.open());
    parent.addEventListener("focusout", (e) => parent.contains(e.relatedTarget) || this.close());
  }

  set(value) {
    text(this.spoken, ` (${value})`);
    text(this.text, value);
    if (opened === this) this.place();
  }

  open() {
    clearTimeout(this.timer);
    if (opened !== this) opened?.close();
    opened = this;
    show(this.text, true);
    this.place();
  }

  close() {
    clearTimeout(this.timer);
    show(this.text, false);
    if (opened === this) opened = null;
  }

  // place moves the text to the left if it would leave the window.
  place() {
    this.text.style.left = "0";
    this.text.style.left = `${Math.min(0, document.documentElement.clientWidth - MARGIN - this.text.getBoundingClientRect().right)}px`;
  }
}

document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || !opened) return;
  e.stopPropagation(); // one Escape hides one thing
  opened.close();
}, true);
document.addEventListener("pointerdown", (e) => opened && !opened.parent.contains(e.target) && opened.close());
addEventListener("resize", () => opened?.place());
