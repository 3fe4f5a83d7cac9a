// Small parts that all sections use. Text goes into the page as text alone.

const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

// Characters that hide or turn text around are shown by number instead.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const visible = (text) =>
  String(text).replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

function element(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function dressed(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined) continue;
    node.append(child instanceof Node ? child : visible(child));
  }
  return node;
}

// A long name may go on in the next line after an underscore.
const name = (text) => element("bdi", {}, String(text).split(/(?<=_)/).map((part, at) =>
  [at ? element("wbr") : null, part]));
const address = (text) => element("span", { class: "url", title: visible(text) }, text);

function figure(value, digits = 0) {
  if (!isNumber(value)) return "\u2013";
  const shown = value.toLocaleString("en", {
    minimumFractionDigits: digits, maximumFractionDigits: digits });
  return /^-[0.,]*$/.test(shown) ? shown.slice(1) : shown.replace("-", "\u2212");
}

// As many digits as a reader can use: 0.123, 12.3, 1,234.
function brief(value) {
  if (!isNumber(value)) return "\u2013";
  if (Number.isInteger(value)) return figure(value);
  const size = Math.abs(value);
  return figure(value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) =>
    element("option", { value, selected: value === chosen }, text)));
}

const show = (id, visibly = true) => { $(id).hidden = !visibly; };
const plural = (count, one, many = one + "s") => `${figure(count)} ${count === 1 ? one : many}`;

// --- colours of agents: a place is taken while the agent is shown

const PLACES = 8;
const DASHES = ["", "7 4", "2 3", "9 3 2 3"];

class Palette {
  constructor() { this.taken = new Map(); }

  has(agent) { return this.taken.has(agent); }

  add(agent) {
    if (this.has(agent)) return;
    const used = new Set(this.taken.values());
    let place = 0;
    while (used.has(place)) place += 1;
    this.taken.set(agent, place);
  }

  remove(agent) { this.taken.delete(agent); }

  colour(agent) { return `s${this.taken.get(agent) % PLACES}`; }

  dash(agent) { return DASHES[Math.floor(this.taken.get(agent) / PLACES) % DASHES.length]; }
}

// Buttons that choose which agents a chart shows.
function chips(host, agents, palette, changed) {
  host.replaceChildren(...agents.map((agent) => {
    const on = palette.has(agent);
    const line = drawn("line", { x1: 2, y1: 6, x2: 20, y2: 6,
      "stroke-dasharray": on ? palette.dash(agent) : "" });
    const chip = element("button", { type: "button", "aria-pressed": String(on),
      class: on ? `chip ${palette.colour(agent)}` : "chip", "data-agent": agent,
      onclick: () => {
        if (palette.has(agent)) palette.remove(agent);
        else palette.add(agent);
        changed();
        [...host.children].find((other) => other.dataset.agent === agent).focus();
      } },
    drawn("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, line), name(agent));
    return chip;
  }));
}
