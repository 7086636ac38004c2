// Success and time to convergence against the number of samples, one line per width, one chart per start.

function renderSuccess(section, select) {
  section.replaceChildren(
    html("h2", { id: "success-title" }, "Success against samples"),
    html("p", { class: "note" }, "Share of runs that succeed, with 95% intervals (Wilson) as bars; a band for the chosen width."),
    widthChoice(select), perStart((start) => lineChart(start, select, SUCCESS)),
    numbers("Success by width and samples", ["width", ...group().starts.flatMap((start) => group().samples.map((m) => `${start.name}, ${short(m)}`))],
      () => byWidth((cell) => cell?.runs ? `${cell.successes}/${cell.runs}` : "–")));
}

function renderConvergence(section, select) {
  section.replaceChildren(
    html("h2", { id: "convergence-title" }, "Time to convergence against samples"),
    html("p", { class: "note" }, `Median step at which test error first got down to ${percentOf(GOAL)}, over the runs that did; bars from the lower to the upper quartile; hollow where fewer ` +
      "than half of the runs succeed. A line that rises again with more data is the sample-wise double descent."),
    ...anySuccess() ? [widthChoice(select), perStart((start) => lineChart(start, select, CONVERGENCE))] : [html("p", { class: "note absent" }, "No run succeeds.")],
    numbers("Median steps by width and samples", ["width", ...group().starts.flatMap((start) => group().samples.map((m) => `${start.name}, ${short(m)}`))],
      () => byWidth((cell) => number(cell?.middle ?? null))));
}

function anySuccess() {
  return group().starts.some(({ cells }) => cells.some((cell) => cell && cell[2]));
}

function byWidth(text) {
  return group().widths.map((width, w) => [number(width), ...group().starts.flatMap((_, start) => group().samples.map((_, m) => text(cellAt(start, w, m))))]);
}

function perStart(chart) {
  return html("div", { class: "starts" }, group().starts.map((start, i) => html("div", {}, html("h3", {}, start.title), figure(chart(i)))));
}

/** The tone of a width between the narrowest and the widest. */
function tone(width) {
  const count = group().widths.length;
  return count > 1 ? (width / (count - 1)).toFixed(3) : "1";
}

function widthChoice(select) {
  const { widths } = group();
  const choose = (width) => select({ start: state.start, width, sample: state.sample }, false);
  const keys = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  return html("div", { class: "controls widths", role: "radiogroup", "aria-label": "width", onkeydown: (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    const box = event.currentTarget.closest("section");
    choose((state.width + keys[event.key] + widths.length) % widths.length);
    box.querySelector(".widths [aria-checked=true]")?.focus();
  } }, html("span", { class: "key" }, "width"), widths.map((width, w) => html("button", {
    type: "button", class: "tone", role: "radio", "aria-checked": String(w === state.width), tabindex: w === state.width ? 0 : -1, "--t": tone(w),
    onclick: (event) => {
      const box = event.currentTarget.closest("section");
      choose(w);
      box.querySelector(".widths [aria-checked=true]")?.focus();
    },
  }, html("span", { class: "dot" }), number(width))));
}

const SUCCESS = {
  title: "runs that succeed", value: (cell) => cell.success, low: (cell) => cell.low, high: (cell) => cell.high, hollow: () => false,
  tip: (cell) => successText(cell).replaceAll(", ", "\n"), label: (name) => `Success against samples from ${name}, one line per width`,
  axis: () => ({ place: (a, b) => scale("linear", 0, 1, a, b), ticks: [0, 0.25, 0.5, 0.75, 1], text: percent }),
};

const CONVERGENCE = {
  title: "steps", value: (cell) => cell.middle, low: (cell) => cell.early, high: (cell) => cell.late, hollow: (cell) => cell.success < 0.5,
  tip: (cell) => `median ${number(cell.middle)} steps\nquartiles ${number(cell.early)} to ${number(cell.late)}\n${cell.successes} of ${cell.runs} runs succeed`,
  label: (name) => `Median steps to convergence against samples from ${name}, one line per width`,
  axis: () => {
    const all = group().starts.flatMap((start) => start.cells).filter((cell) => cell && cell[8] !== null).flatMap((cell) => [cell[7], cell[9]]);
    const low = Math.max(1, all.reduce((a, b) => Math.min(a, b), 1e9)), high = all.reduce((a, b) => Math.max(a, b), 10);
    const [bottom, top] = all.length ? [low / 1.25, Math.max(high, low * 4) * 1.25] : [1, 10];
    return { place: (a, b) => scale("log", bottom, top, a, b), ticks: logTicks(bottom, top), text: short };
  },
};

/** Places of the samples on a logarithmic axis; online data come one step after the largest number. */
function samplePlaces(samples) {
  const finite = samples.filter((m) => m !== null);
  const ratio = finite.length > 1 ? finite.at(-1) / finite.at(-2) : 10;
  return samples.map((m) => m ?? (finite.at(-1) ?? 1) * ratio);
}

function lineChart(start, select, kind) {
  const { widths, samples, starts } = group();
  const at = samplePlaces(samples);
  const x = {
    place: (a, b) => scale("log", at[0], Math.max(at.at(-1), at[0] * 1.01), a, b), ticks: at, title: "training examples",
    text: (tick) => short(samples[at.indexOf(tick)]),
  };
  const y = { ...kind.axis(), title: kind.title };
  return (width) => {
    const { drawing, layer, px, py } = frame(width, Math.max(230, Math.min(340, width * 0.6)), kind.label(starts[start].name), x, y);
    const read = [];
    const order = widths.map((_, w) => w).sort((a, b) => (a === state.width) - (b === state.width));
    for (const w of order) {
      const chosen = w === state.width;
      const cells = samples.map((_, m) => cellAt(start, w, m)).map((cell) => cell && kind.value(cell) !== null ? cell : null);
      const lines = svg("g", { class: "tone", "--t": tone(w) });
      const known = cells.map((cell, m) => cell && { cell, m, x: px(at[m]), y: py(kind.value(cell)), low: py(kind.low(cell)), high: py(kind.high(cell)) });
      const solid = known.filter(Boolean);
      if (chosen && solid.length > 1) {
        lines.append(svg("path", { class: "band", d: `${path(solid.map((p) => [p.x, p.high]))}${path(solid.map((p) => [p.x, p.low]).reverse()).replace("M", "L")}Z` }));
      }
      const marked = chosen || widths.length <= 8 ? solid : [];
      for (const p of marked) lines.append(svg("line", { class: chosen ? "chosen-whisker" : "whisker", x1: p.x, x2: p.x, y1: p.low, y2: p.high }));
      lines.append(svg("path", { class: `line${chosen ? " chosen" : ""}`, d: path(known.map((p) => p && [p.x, p.y])) }));
      for (const p of marked) {
        lines.append(svg("circle", {
          class: `dot${kind.hollow(p.cell) ? " hollow" : ""}`, cx: p.x, cy: p.y, r: chosen ? 5 : 3.8,
          onclick: () => select({ start, width: w, sample: p.m }, false),
        }));
      }
      layer.append(lines);
      read.push(solid.map((p) => ({
        x: p.x, y: p.y, text: `width ${number(widths[w])}, ${examples(samples[p.m])}\n${kind.tip(p.cell)}`,
        choose: () => select({ start, width: w, sample: p.m }, false),
      })));
    }
    return readable(drawing, read.reverse());
  };
}
