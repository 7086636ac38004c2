// Every setting of the store: what all cells share, then a table of what differs, to be sorted, filtered and
// taken away: on a screen a page at a time, on paper all of it.

const PAGE = 50, PRINTED = 2000;
const RESULTS = ["runs", "succeeded", "diverged", "failed", "median steps"];

function renderSettings(section, rowsAtOnce = PAGE) {
  const { shared } = DATA.settings, { summary } = DATA;
  let waiting = 0;
  section.replaceChildren(
    html("h2", { id: "settings-title" }, "Every setting"),
    html("p", { class: "note" }, `${number(summary.cells)} cells. Engines: ${Object.entries(summary.engines).map(([name, runs]) => `${name} (${number(runs)} runs)`).join(", ") || "none"}. `,
      `Curves show at most ${DATA.curves.limit[0]} runs per cell (its first trials) and about ${DATA.curves.limit[1]} of the recorded steps; everything else counts all runs.`),
    html("dl", { class: "shared" }, Object.entries(shared).map(([key, value]) => html("div", {}, html("dt", {}, key), html("dd", {}, value)))),
    DATA.settings.ids.length ? html("div", { class: "controls filter" },
      html("label", { for: "filter" }, "filter ", html("input", { id: "filter", type: "search", value: table.filter, autocomplete: "off", spellcheck: "false",
        placeholder: "width>=100 failed>0 sparse", "aria-describedby": "filter-note", oninput: (event) => {
          table.filter = event.target.value;
          table.page = 0;
          clearTimeout(waiting);
          waiting = setTimeout(() => { drawRows(section); announce(section.querySelector("#filter-note").textContent); writeLink(); }, 120);
        } })),
      html("span", { id: "filter-note", class: "key" }),
      html("button", { id: "csv", type: "button", onclick: () => saveText("cells.csv", savedRows()) }, "Save as CSV")) : "",
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "settings" }, html("table", { class: "numbers" }, html("thead", {}), html("tbody", {}))),
    html("div", { class: "controls paging" }),
  );
  drawRows(section, rowsAtOnce);
}

/** The rows that the filter leaves, in order: how many there are, and those of a range. */
function chosenRows() {
  const { keys, ids, columns } = DATA.settings;
  const heads = ["cell", ...keys, ...RESULTS];
  const rowAt = (i) => {
    const { runs, successes, diverged, failed, middle } = cellById(ids[i]);
    return [ids[i], ...columns.map(({ values, index }) => values[index[i]]), runs, successes, diverged, failed, middle];
  };
  const place = heads.indexOf(table.sort), { holds, unknown } = parseFilter(table.filter, heads);
  if (place < 0 && !table.filter.trim()) { // no need to make them all
    return { heads, unknown, count: ids.length, rows: (from, to) => ids.slice(from, to).map((_, i) => rowAt(from + i)) };
  }
  const rows = ids.map((_, i) => rowAt(i)).filter(holds), sign = table.down ? -1 : 1;
  if (place >= 0) rows.sort((a, b) => (a[place] === null) - (b[place] === null) || sign * inOrder(a[place], b[place]));
  return { heads, unknown, count: rows.length, rows: (from, to) => rows.slice(from, to) };
}

/** All of them, for another program. */
function savedRows() {
  const { heads, count, rows } = chosenRows();
  return csvText([heads, ...rows(0, count)]);
}

function drawRows(section, rowsAtOnce = PAGE) {
  const { heads, rows, count, unknown } = chosenRows(), total = DATA.settings.ids.length;
  const pages = Math.max(1, Math.ceil(count / PAGE));
  table.page = Math.max(0, Math.min(table.page, pages - 1));
  const from = rowsAtOnce > PAGE ? 0 : table.page * PAGE, to = Math.min(count, from + rowsAtOnce);
  const turn = (by) => { table.page += by; keepFocus(() => drawRows(section)); };
  const sort = (name) => {
    Object.assign(table, { sort: name, down: table.sort === name && !table.down, page: 0 });
    keepFocus(() => drawRows(section));
    announce(`Sorted by ${name}, ${table.down ? "descending" : "ascending"}`);
    writeLink();
  };
  section.querySelector("thead").replaceChildren(html("tr", {}, heads.map((name) => html("th", { scope: "col", "aria-sort": table.sort === name ? (table.down ? "descending" : "ascending") : null },
    html("button", { id: `sort-${name}`, type: "button", class: "sort", onclick: () => sort(name) }, name, html("span", { "aria-hidden": "true" }, table.sort === name ? (table.down ? " ↓" : " ↑") : ""))))));
  section.querySelector("tbody").replaceChildren(...rows(from, to).map((row) => html("tr", {}, row.map((value, i) =>
    html(i ? "td" : "th", i ? {} : { scope: "row" }, i >= row.length - RESULTS.length ? number(value) : String(value))))));
  const note = section.querySelector("#filter-note");
  if (note) note.textContent = unknown.length ? `No column is called ${unknown.join(", ")}` : count < total ? `${number(count)} of ${number(total)} cells` : "";
  const paging = section.querySelector(".paging");
  paging.hidden = pages === 1;
  const whole = rowsAtOnce > PAGE && to < count ? [html("p", { class: "note" }, `The first ${number(to)} of ${number(count)} cells; fewfire sweep export writes them all.`)] : [];
  section.querySelectorAll(":scope > .note:not(:first-of-type)").forEach((old) => old.remove());
  paging.before(...whole);
  paging.replaceChildren(
    html("button", { id: "previous", type: "button", disabled: table.page === 0, onclick: () => turn(-1) }, "Previous"),
    html("span", {}, `${number(count ? from + 1 : 0)}–${number(to)} of ${number(count)}`),
    html("button", { id: "next", type: "button", disabled: table.page === pages - 1, onclick: () => turn(1) }, "Next"));
}
