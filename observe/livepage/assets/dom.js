// Small helpers for elements. Nodes are made once and then updated, so that focus, selection and scroll positions stay.

// el makes an element. Properties that begin with "on" are listeners, and class, data and aria are attributes.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.includes("-") && name !== "list") node[name] = value;
    else node.setAttribute(name === "className" ? "class" : name, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

// text sets the text of a node if it differs.
export function text(node, value) {
  const s = String(value);
  if (node.textContent !== s) node.textContent = s;
  return node;
}

// attr sets an attribute if it differs, and removes it for null and false.
export function attr(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  return node;
}

// show hides or shows a node.
export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
  return node;
}

// Rows keeps one node for each item of a list, by key, in the order of the list. make returns {node, update}.
export class Rows {
  constructor(parent, key, make) {
    Object.assign(this, { parent, key, make, rows: new Map() });
  }

  update(items, ...rest) {
    const keep = new Set();
    const focused = document.activeElement;
    let place = this.parent.firstElementChild;
    for (const item of items) {
      const k = this.key(item);
      if (keep.has(k)) continue;
      keep.add(k);
      let row = this.rows.get(k);
      if (!row) this.rows.set(k, (row = this.make(item, ...rest)));
      row.update?.(item, ...rest);
      for (const node of row.nodes ?? [row.node]) {
        if (node === place) place = place.nextElementSibling;
        else this.parent.insertBefore(node, place);
      }
    }
    for (const [k, row] of this.rows) {
      if (keep.has(k)) continue;
      for (const node of row.nodes ?? [row.node]) node.remove();
      this.rows.delete(k);
    }
    // A node that moves loses the focus.
    if (focused !== document.activeElement && this.parent.contains(focused)) focused.focus({ preventScroll: true });
  }
}

// More limits a long list, until somebody asks for all of it.
export class More {
  constructor(limit, noun, changed) {
    Object.assign(this, { limit, noun, all: false });
    this.node = el("button", { type: "button", className: "more", "aria-expanded": "false", hidden: true, onclick: () => {
      this.all = !this.all;
      changed();
    } });
  }

  // of returns the items to show.
  of(items) {
    const long = items.length > this.limit;
    show(this.node, long);
    attr(this.node, "aria-expanded", String(this.all));
    text(this.node, this.all ? `Show only ${this.limit}` : `Show all ${plural(items.length, this.noun)}`);
    return long && !this.all ? items.slice(0, this.limit) : items;
  }
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

// number formats a count: whole, or short from 100,000 on.
export const number = (n) => (Math.abs(n) >= 1e5 ? compact.format(n) : whole.format(n));

// rate formats a number for each second.
export const rate = (n) => (n === null ? "–" : n >= 10 || n === 0 ? number(n) : one.format(n));

// duration formats seconds with one unit.
export function duration(s) {
  if (s === null || s === undefined || Number.isNaN(s)) return "–";
  if (s <= 0) return "0 s";
  if (s < 1e-3) return `${Math.round(s * 1e6)} µs`;
  if (s < 0.1) return `${one.format(s * 1e3)} ms`;
  if (s < 1) return `${Math.round(s * 1e3)} ms`;
  if (s < 10) return Number.isInteger(s) ? `${s} s` : `${one.format(s)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

// ago formats an age in seconds.
export const ago = (s) => (s < 1 ? "now" : `${duration(Math.floor(s))} ago`);

// bytes formats a size.
export const bytes = (n) => (n >= 1 << 30 ? `${one.format(n / (1 << 30))} GiB` : n >= 1 << 20 ? `${one.format(n / (1 << 20))} MiB` : n >= 1024 ? `${whole.format(n / 1024)} KiB` : `${whole.format(n)} B`);

// plural formats a count with its noun.
export const plural = (n, noun, many = `${noun}s`) => `${number(n)} ${n === 1 ? noun : many}`;
