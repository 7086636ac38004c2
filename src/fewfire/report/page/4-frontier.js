// The success frontier: in words, with why runs diverged or failed in sight; then a heat map per start, with the line of
// even odds and the theory's shape on top.

/** The findings of a group, with a mark for those that are clear. */
function renderFindings(section) {
  const marks = { true: ["yes", "✓", "clear: "], false: ["no", "✗", "clear: "], null: ["open", "≈", "not clear: "] };
  section.hidden = !group().findings.length;
  section.replaceChildren(...group().findings.map(({ holds, text }) => {
    const [name, mark, told] = marks[String(holds)];
    const end = text.indexOf(":");
    return html("p", { class: name }, html("span", { class: "mark", "aria-hidden": "true" }, mark),
      html("span", {}, html("span", { class: "unseen" }, told), html("b", {}, text.slice(0, end + 1)), text.slice(end + 1)));
  }));
}

/** The messages, the commonest first, and the way to the cells where it happened. */
function renderTrouble(section, filter) {
  const { reasons, diverged, failed } = DATA.summary;
  section.hidden = !reasons.length;
  if (section.hidden) return;
  const show = (status) => html("button", { id: `show-${status}`, type: "button", onclick: () => filter(`${status}>0`) }, `Cells with ${status} runs`);
  section.replaceChildren(
    html("h2", { id: "trouble-title" }, "What went wrong"),
    html("p", { class: "note" }, "Diverged runs left the finite numbers; they are final and count as not successful. Failed runs ended in an error, count nowhere, and are tried again by the next sweep."),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Why runs diverged or failed" }, html("table", { class: "numbers" },
      html("thead", {}, html("tr", {}, ["status", "runs", "message"].map((name) => html("th", { scope: "col", class: "text" }, name)))),
      html("tbody", {}, reasons.map(([status, message, runs]) => html("tr", {}, html("th", { scope: "row", class: "text" }, status),
        html("td", { class: "text" }, number(runs)), html("td", { class: "text message" }, message || "no message")))))),
    html("div", { class: "controls shown" }, diverged ? show("diverged") : null, failed ? show("failed") : null),
  );
}

function renderFrontier(section, select) {
  const { starts } = group();
  section.replaceChildren(
    html("h2", { id: "frontier-title" }, "Which networks learn"),
    html("p", { class: "note" }, `Share of runs whose test error gets down to ${percentOf(GOAL)}, by width and number of training ` +
      `examples. ${group().problem}; ${group().training}. Choose a cell, by a click or with the arrow keys, for its training curves.`),
    controls(section),
    html("div", { class: "starts" }, starts.map((start, i) => heatMap(start, i, select))),
    theoryNote() ?? "",
  );
  drawOverlays(section);
}

function percentOf(share) {
  return `${Number((share * 100).toPrecision(3))}%`;
}

function controls(section) {
  const toggle = (name, text, mark) => html("label", {},
    html("input", { type: "checkbox", checked: state[name], onchange: (event) => {
      state[name] = event.target.checked;
      drawOverlays(section);
      writeLink();
    } }), html("span", { class: "key" }, svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, svg("path", { class: mark, d: "M1 6H25" })), text));
  return html("div", { class: "controls" },
    html("span", { class: "legend" }, "0%", html("span", { class: "bar", role: "img", "aria-label": "colour scale from no success to all runs succeeding" }), "100%"),
    toggle("measured", "half of the runs succeed", "measured"),
    html("span", { class: "key" }, svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, svg("path", { class: "interval", d: "M2 2v8M2 6H24M24 2v8" })), "95% interval of that"),
    group().theory ? toggle("theory", "equal cost (Proposition 3)", "equal") : null);
}

function heatMap(start, place, select) {
  const { widths, samples } = group();
  const tight = samples.length > 9, absent = absentText(start);
  const name = `Share of successes from ${start.name}, by width and number of examples`;
  const head = html("tr", {}, html("th", { class: "corner", scope: "col" }, "width"), samples.map((m) => html("th", { scope: "col", "aria-label": examples(m) }, short(m, tight))));
  const rows = widths.map((width, w) => html("tr", {},
    html("th", { scope: "row", "aria-label": `width ${number(width)}`, "data-tip": halfText(start, w) }, short(width, tight)), samples.map((_, m) => mapCell(place, w, m, select)))).reverse();
  const table = html("table", { role: "grid", "aria-label": name, onkeydown: (event) => moveFocus(event, place, select) },
    html("colgroup", {}, html("col", { class: "head" }), html("col", { span: samples.length })),
    html("thead", {}, head), html("tbody", {}, rows));
  return html("div", {}, html("h3", {}, start.title),
    html("div", { class: "scroll" }, html("div", { class: `map${tight ? " tight" : ""}${widths.length > 9 ? " low" : ""}`, "--columns": samples.length, "--rows": widths.length }, table,
      svg("svg", { "aria-hidden": "true", preserveAspectRatio: "none" }))),
    html("p", { class: "axis-name", "aria-hidden": "true" }, "training examples"),
    absent ? html("p", { class: "note absent" }, absent) : null);
}

/** Where half of the runs of one width succeed, in words. */
function halfText(start, w) {
  const name = (value) => value === "below" ? "below the map" : value === "above" ? "above the map" : number(Math.round(value));
  if (start.half[w] === null) return `width ${number(group().widths[w])}`;
  const [low, high] = start.interval[w].map(name);
  return `width ${number(group().widths[w])}\nhalf succeed with ${name(start.half[w])} examples\n95% interval ${low} to ${high}`;
}

function mapCell(start, width, sample, select) {
  const cell = cellAt(start, width, sample);
  const { widths, samples } = group();
  const where = `width ${number(widths[width])}, ${examples(samples[sample])}`;
  const place = { start, width, sample };
  if (!cell || !cell.runs) {
    return html("td", { role: "gridcell", class: "cell empty", tabindex: -1, "data-place": Object.values(place).join(), "aria-label": `${where}: ${cell?.failed ? troubleText(cell) : "not part of the sweep"}`,
      onclick: () => select(place, true) }, "");
  }
  const trouble = troubleText(cell);
  const median = cell.middle === null ? "" : `; median ${number(cell.middle)} steps`;
  const told = `${where}: ${successText(cell)}${median}${trouble && `; ${trouble}`}`;
  const shown = samples.length > 9 ? Math.round(cell.success * 100) : percent(cell.success);
  return html("td", {
    role: "gridcell", class: `cell${trouble ? " trouble" : ""}`, tabindex: -1, ...shade(cell.success),
    "data-place": Object.values(place).join(), "aria-label": told, "data-tip": told.replace(": ", "\n").replaceAll("; ", "\n"),
    onclick: () => select(place, true),
  }, html("span", {}, String(shown)));
}

/** The colour of a share between 0 and 1. */
function shade(share) {
  const level = Math.max(0, Math.min(4.9999, share * 5));
  return { "data-part": Math.floor(level), "--t": (level % 1).toFixed(3) };
}

/** Arrow keys, Home and End walk the map and take the choice along; Enter and Space go to the curves. */
function moveFocus(event, start, select) {
  const { widths, samples } = group();
  const [, width, sample] = event.target.closest("td[data-place]")?.dataset.place.split(",").map(Number) ?? [];
  if (width === undefined) return;
  const moves = {
    ArrowLeft: [width, sample - 1], ArrowRight: [width, sample + 1], ArrowUp: [width + 1, sample], ArrowDown: [width - 1, sample],
    Home: [width, 0], End: [width, samples.length - 1], PageUp: [widths.length - 1, sample], PageDown: [0, sample],
  };
  const inside = (w, m) => w >= 0 && w < widths.length && m >= 0 && m < samples.length;
  if (event.key === "Enter" || event.key === " ") select({ start, width, sample }, true);
  else if (moves[event.key]) {
    const [w, m] = moves[event.key];
    if (inside(w, m)) select({ start, width: w, sample: m }, false);
  } else return;
  event.preventDefault();
}

/** Marks the chosen cell in its map and the same cell in the others; only the chosen one is a tab stop of its map. */
function markChoice(section) {
  for (const td of section.querySelectorAll("td[data-place]")) {
    const [start, width, sample] = td.dataset.place.split(",").map(Number);
    const same = width === state.width && sample === state.sample;
    td.setAttribute("aria-selected", String(same && start === state.start));
    td.classList.toggle("twin", same && start !== state.start);
    td.tabIndex = same ? 0 : -1;
  }
}
