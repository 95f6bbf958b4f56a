// The document, which the page of a program and that of a recording share: its views, of which the hash names one.
import { el, attr, show } from "./dom.js";

export const $ = (id) => document.getElementById(id);

export class Views {
  // titles are those of the views, by name. changed is called after another view was shown.
  constructor(titles, changed) {
    this.changed = changed;
    this.titles = titles;
    this.links = Object.entries(titles).map(([name, title]) => el("a", { href: `#/${name}`, "data-view": name }, title));
    document.querySelector("nav").append(...this.links);
    this.sections = Object.keys(titles).map((id) => el("section", { id, className: "view", hidden: true }));
    $("main").append(...this.sections);
    const header = document.querySelector("header");
    new ResizeObserver(() => { // what gets the focus is not behind the header
      document.documentElement.style.setProperty("--header", `${header.offsetHeight}px`);
    }).observe(header);
    document.querySelector(".skip").addEventListener("click", (e) => {
      e.preventDefault(); // its hash is not that of a view
      $("main").focus();
    });
    addEventListener("hashchange", () => this.route());
  }

  // begin shows the first view. views have update, enter and leave.
  begin(views) {
    this.views = views;
    this.route();
  }

  route() {
    const [, name] = location.hash.split("/");
    this.views[this.shown]?.leave?.();
    this.shown = this.views[name] ? name : Object.keys(this.titles)[0];
    for (const section of this.sections) show(section, section.id === this.shown);
    for (const link of this.links) attr(link, "aria-current", link.dataset.view === this.shown ? "page" : null);
    this.views[this.shown].enter?.(location.hash);
    this.changed();
  }

  update(state) { this.views[this.shown].update(state); }
}
