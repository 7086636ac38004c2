// Elements and texts. Everything that comes from a spec enters the page as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: attributes by name, `on…` as listeners, `--…` as style properties, then children. */
function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const thousands = new Intl.NumberFormat("en");

function number(value) {
  return value === null ? "–" : thousands.format(value);
}

/** 20000 as 20k, for axes; with `tight`, 1334 as 1.3k, for narrow columns. */
function short(value, tight = false) {
  if (value === null) return tight ? "∞" : "online";
  if (value < (tight ? 1e3 : 1e4)) return String(value);
  const [size, letter] = value >= 1e9 ? [1e9, "G"] : value >= 1e6 ? [1e6, "M"] : [1e3, "k"];
  return `${Number((value / size).toPrecision(tight ? 2 : 3))}${letter}`;
}

function percent(share) {
  return `${Math.round(share * 100)}%`;
}

function examples(samples) {
  return samples === null ? "online" : `${number(samples)} examples`;
}

/** Shows a text next to a box on the screen. */
function showTip(text, box) {
  const tip = document.getElementById("tip");
  tip.textContent = text;
  tip.hidden = false;
  const left = box.left + box.width / 2 - tip.offsetWidth / 2;
  const above = box.top - tip.offsetHeight - 9;
  tip.style.left = `${Math.max(6, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 6))}px`;
  tip.style.top = `${above > 6 ? above : box.bottom + 9}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

/** Says something to those who do not see it. */
function announce(text) {
  document.getElementById("status").textContent = text;
}

/** Shows `data-tip` of whatever is under the pointer, or has the keyboard; charts see to themselves (3-reading.js). */
function watchTips() {
  const show = (event) => {
    if (event.target.closest?.(".chart[tabindex]")) return;
    const owner = event.target.closest?.("[data-tip]");
    if (!owner || event.pointerType === "touch" || (event.type === "focusin" && !owner.matches(":focus-visible"))) hideTip();
    else showTip(owner.dataset.tip, owner.getBoundingClientRect());
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("scroll", hideTip, { passive: true, capture: true });
  document.addEventListener("pointerdown", hideTip);
}

/**
 * A table of numbers that can be folded out: the figures for readers who cannot see them, and for copying. `rows` makes
 * its rows when it is opened.
 */
function numbers(caption, heads, rows) {
  const row = (cells) => html("tr", {}, cells.map((cell, i) => html(i ? "td" : "th", i ? {} : { scope: "row" }, String(cell))));
  const body = html("tbody");
  const head = html("tr", {}, heads.map((name) => html("th", { scope: "col" }, name)));
  const table = html("table", { class: "numbers" }, html("caption", { class: "unseen" }, caption), html("thead", {}, head), body);
  return html("details", { ontoggle: () => { if (!body.childElementCount) body.append(...rows().map(row)); } }, html("summary", {}, "Numbers"),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table));
}
