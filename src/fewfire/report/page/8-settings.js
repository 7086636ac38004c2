// Every setting of the store: what all cells share, then a table of what tells them apart: on a screen a page at a
// time, on paper all of it.

const PAGE = 50, PRINTED = 2000;

function renderSettings(section, rowsAtOnce = PAGE) {
  const { shared, keys, ids, columns } = DATA.settings;
  const pages = Math.max(1, Math.ceil(ids.length / PAGE));
  state.page = Math.max(0, Math.min(state.page, pages - 1));
  const from = rowsAtOnce > PAGE ? 0 : state.page * PAGE, to = Math.min(ids.length, from + rowsAtOnce);
  const turn = (by) => { state.page += by; renderSettings(section); };
  const heads = ["cell", ...keys, "runs", "succeeded", "diverged", "failed", "median steps"];
  const rows = [];
  for (let i = from; i < to; i += 1) rows.push(settingRow(ids[i], columns.map(({ values, index }) => values[index[i]])));
  const { summary } = DATA;
  section.replaceChildren(
    html("h2", { id: "settings-title" }, "Every setting"),
    html("p", { class: "note" }, `${number(summary.cells)} cells. Engines: ${Object.entries(summary.engines).map(([name, runs]) => `${name} (${number(runs)} runs)`).join(", ") || "none"}. `,
      `Curves show at most ${DATA.curves.limit[0]} runs per cell (its first trials) and about ${DATA.curves.limit[1]} of the recorded steps; everything else counts all runs.`),
    html("dl", { class: "shared" }, Object.entries(shared).map(([key, value]) => html("div", {}, html("dt", {}, key), html("dd", {}, value)))),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "settings" }, html("table", { class: "numbers" },
      html("thead", {}, html("tr", {}, heads.map((name) => html("th", { scope: "col" }, name)))), html("tbody", {}, rows))),
    rowsAtOnce > PAGE && to < ids.length ? html("p", { class: "note" }, `The first ${number(to)} of ${number(ids.length)} cells; fewfire sweep export writes them all.`) : "",
    pages > 1 ? html("div", { class: "controls paging" },
      html("button", { type: "button", disabled: state.page === 0, onclick: () => turn(-1) }, "Previous"),
      html("span", {}, `${number(from + 1)}–${number(to)} of ${number(ids.length)}`),
      html("button", { type: "button", disabled: state.page === pages - 1, onclick: () => turn(1) }, "Next")) : "",
    summary.reasons.length ? numbers("Why runs diverged or failed", ["status", "message", "runs"], summary.reasons) : "",
  );
}

const PLACES = new Map();
DATA.groups.forEach((one, g) => one.starts.forEach((start, s) => start.cells.forEach((cell, place) => {
  if (cell) PLACES.set(cell[0], [g, s, place]);
})));

function settingRow(id, values) {
  const [g, s, place] = PLACES.get(id);
  const [, runs, successes, , , diverged, failed, , middle] = DATA.groups[g].starts[s].cells[place];
  const results = [runs, successes, diverged, failed, middle];
  return html("tr", {}, html("th", { scope: "row" }, String(id)), values.map((value) => html("td", {}, value)), results.map((value) => html("td", {}, number(value))));
}
