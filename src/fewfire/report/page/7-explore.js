// Any two settings against each other: cells that agree in them are pooled, a map for each value of a third one.

const MOST = { panels: 24, rows: 40, columns: 40, values: 200 };

/** What can be shown: a value of pooled cells, in words, and its place between 0 and 1. */
const MEASURES = {
  success: { name: "runs that succeed", value: (sum) => sum.runs ? sum.successes / sum.runs : null, text: percent },
  steps: { name: "median steps to success", value: (sum) => middle(sum.steps), text: (value) => short(value, true), log: true },
  diverged: { name: "runs that diverged", value: (sum) => sum.runs ? sum.diverged / sum.runs : null, text: percent },
  failed: { name: "runs that failed", value: (sum) => sum.runs + sum.failed ? sum.failed / (sum.runs + sum.failed) : null, text: percent },
  runs: { name: "runs", value: (sum) => sum.runs, text: (value) => short(value, true), count: true },
};

function middle(values) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : null;
}

function columnOf(key) {
  return DATA.settings.columns[DATA.settings.keys.indexOf(key)];
}

/** The places of a setting's values in their order: numbers by size, then texts. */
function ordered(key) {
  if (!columnOf(key)) return [0];
  const { values } = columnOf(key);
  return values.map((_, i) => i).sort((a, b) => inOrder(values[a], values[b]));
}

function inOrder(a, b) {
  const [x, y] = [Number(a), Number(b)];
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
  return Number.isNaN(x) ? String(a).localeCompare(String(b)) : x - y;
}

/** The cells that the filters leave, pooled by panel, row and column. */
function pooled() {
  const { ids } = DATA.settings;
  const at = (key) => columnOf(key)?.index ?? [];
  const [panel, y, x] = [at(explore.panel), at(explore.y), at(explore.x)];
  const only = Object.entries(explore.only).map(([key, value]) => [columnOf(key).index, columnOf(key).values.indexOf(value)]);
  const sums = new Map();
  ids.forEach((id, i) => {
    if (only.some(([index, wanted]) => index[i] !== wanted)) return;
    const key = `${panel[i] ?? 0},${y[i] ?? 0},${x[i] ?? 0}`;
    let sum = sums.get(key);
    if (!sum) sums.set(key, sum = { ids: [], runs: 0, successes: 0, diverged: 0, failed: 0, steps: [] });
    const cell = cellById(id);
    sum.ids.push(id);
    for (const name of ["runs", "successes", "diverged", "failed"]) sum[name] += cell[name];
    sum.steps.push(cell.middle);
  });
  return sums;
}

function renderExplore(section, show) {
  const { keys } = DATA.settings;
  section.hidden = !keys.length;
  if (section.hidden) return;
  const redraw = () => { keepFocus(() => renderExplore(section, show)); writeLink(); };
  const others = keys.filter((key) => ![explore.x, explore.y, explore.panel].includes(key) && columnOf(key).values.length <= MOST.values);
  for (const key of Object.keys(explore.only)) if (!others.includes(key)) delete explore.only[key];
  const sums = pooled(), measure = MEASURES[explore.measure];
  const values = [...sums.values()].map(measure.value).filter((value) => value !== null);
  const [low, high] = [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), 0)];
  const shadeOf = (value) => measure.log ? Math.log(value / low) / (Math.log(high / low) || 1) : measure.count ? value / (high || 1) : value;
  const ends = measure.log || measure.count ? [values.length ? measure.text(measure.log ? low : 0) : "–", values.length ? measure.text(high) : "–"] : ["0%", "100%"];
  const panels = ordered(explore.panel).filter((p) => !explore.panel || [...sums.keys()].some((key) => key.startsWith(`${p},`)));
  const pools = [...sums.values()].some(({ ids }) => ids.length > 1);
  section.replaceChildren(
    html("h2", { id: "explore-title" }, "Any two settings"),
    html("p", { class: "note" }, `Cells that agree in the axes are pooled${pools && measure.log ? "; of pooled cells the median of their medians" : ""}. Enter or a click shows the cells behind a square.`),
    html("div", { class: "controls picks" },
      choice("explore-y", "rows", explore.y, ["", ...keys], (value) => { explore.y = value; redraw(); }),
      choice("explore-x", "columns", explore.x, ["", ...keys], (value) => { explore.x = value; redraw(); }),
      choice("explore-panel", "a map for each", explore.panel, ["", ...keys], (value) => { explore.panel = value; redraw(); }),
      choice("explore-measure", "colour", explore.measure, Object.keys(MEASURES), (value) => { explore.measure = value; redraw(); }, (name) => MEASURES[name].name)),
    others.length ? html("div", { class: "controls picks" }, others.map((key) =>
      choice(`only-${key}`, `only ${key}`, explore.only[key] ?? "", ["", ...ordered(key).map((i) => columnOf(key).values[i])], (value) => {
        if (value) explore.only[key] = value; else delete explore.only[key];
        redraw();
      }, (value) => value || "all"))) : "",
    html("div", { class: "controls" }, html("span", { class: "legend" }, ends[0], html("span", { class: "bar", role: "img", "aria-label": `colour scale of ${measure.name} from ${ends[0]} to ${ends[1]}` }), ends[1])),
    html("div", { class: "panels" }, panels.slice(0, MOST.panels).map((p) => pivotMap(p, sums, measure, shadeOf, show))),
    panels.length > MOST.panels ? html("p", { class: "note" }, `The first ${MOST.panels} of ${number(panels.length)} maps.`) : "",
  );
}

/** A labelled choice; `text` names the values. */
function choice(id, label, chosen, values, change, text = (value) => value || "–") {
  return html("label", { for: id }, `${label} `, html("select", { id, onchange: (event) => change(event.target.value) },
    values.map((value) => html("option", { value, selected: value === chosen }, text(value)))));
}

function pivotMap(panel, sums, measure, shadeOf, show) {
  const rows = ordered(explore.y).slice(0, MOST.rows), columns = ordered(explore.x).slice(0, MOST.columns);
  const name = (key, i) => columnOf(key)?.values[i] ?? "";
  const head = (text) => text !== "" && !Number.isNaN(Number(text)) ? short(Number(text), columns.length > 9) : text;
  const title = explore.panel ? `${explore.panel} ${name(explore.panel, panel)}` : "";
  const label = `${measure.name} by ${[explore.y, explore.x].filter(Boolean).join(" and ") || "nothing"}${title && `, ${title}`}`;
  let stop = 0; // one tab stop per map: its first cell with runs
  const square = (y, x) => {
    const sum = sums.get(`${panel},${y},${x}`), value = sum ? measure.value(sum) : null;
    const where = [[explore.y, y], [explore.x, x]].filter(([key]) => key).map(([key, i]) => `${key} ${name(key, i)}`).join(", ") || "all cells";
    if (!sum) return html("td", { role: "gridcell", class: "empty", tabindex: -1, "aria-label": `${where}: no cells` });
    const trouble = troubleText(sum), steps = middle(sum.steps);
    const told = `${where}: ${sum.successes} of ${sum.runs} runs succeed${steps === null ? "" : `; median ${number(steps)} steps`}${trouble && `; ${trouble}`}${sum.ids.length > 1 ? `; ${number(sum.ids.length)} cells` : ""}`;
    return html("td", { role: "gridcell", class: value === null ? "empty" : "", tabindex: stop++ ? -1 : 0, ...(value === null ? {} : shade(shadeOf(value))),
      "aria-label": told, "data-tip": told.replace(": ", "\n").replaceAll("; ", "\n"), onclick: () => show(sum.ids, panel, y, x) },
      value === null ? "" : html("span", {}, measure.text(value).replace(columns.length > 9 ? "%" : "", "")));
  };
  return html("div", {}, title ? html("h3", {}, title) : null, html("div", { class: "scroll" },
    html("div", { class: `map${columns.length > 9 ? " tight" : ""}${rows.length > 9 ? " low" : ""}`, "--columns": columns.length },
      html("table", { role: "grid", "aria-label": label, onkeydown: walk }, html("colgroup", {}, html("col", { class: "head" }), html("col", { span: columns.length })),
        html("thead", {}, html("tr", {}, html("th", { class: "corner", scope: "col" }, ""), columns.map((x) => html("th", { scope: "col", "data-tip": `${explore.x} ${name(explore.x, x)}` }, head(name(explore.x, x)))))),
        html("tbody", {}, rows.map((y) => html("tr", {}, html("th", { scope: "row", "data-tip": `${explore.y} ${name(explore.y, y)}` }, head(name(explore.y, y))), columns.map((x) => square(y, x)))).reverse())))),
    html("p", { class: "axis-name", "aria-hidden": "true" }, [explore.y && `${explore.y} ↑`, explore.x && `${explore.x} →`].filter(Boolean).join("  ")));
}

/** Arrow keys, Home and End walk a grid; Enter and Space are a click. */
function walk(event) {
  const cell = event.target.closest("td"), row = cell?.parentElement;
  if (!cell) return;
  const column = [...row.children].indexOf(cell);
  const moves = {
    ArrowLeft: () => cell.previousElementSibling, ArrowRight: () => cell.nextElementSibling, Home: () => row.querySelector("td"), End: () => row.lastElementChild,
    ArrowUp: () => row.previousElementSibling?.children[column], ArrowDown: () => row.nextElementSibling?.children[column],
  };
  if (event.key === "Enter" || event.key === " ") cell.click();
  else if (moves[event.key]) {
    const next = moves[event.key]();
    if (next?.matches("td")) { cell.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  } else return;
  event.preventDefault();
}
