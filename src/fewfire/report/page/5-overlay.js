// Lines on the heat maps, in units of cells: what lays out the cells lays out the lines, on a screen and on paper alike.
// Columns and rows are not evenly spaced numbers, so places are interpolated between centres.

const CELL = 100; // units per row and per column

function drawOverlays(section) {
  const note = section.querySelector(".theory");
  if (note) note.hidden = !state.theory;
  const { widths, samples } = group();
  const finite = samples.filter((m) => m !== null).length, rows = widths.length;
  section.querySelectorAll(".map").forEach((map, start) => {
    const { half, interval } = group().starts[start];
    const lines = [];
    if (state.theory && group().theory) lines.push(["equal", group().theory.lines[start]]);
    if (state.measured) lines.push(["measured", half]);
    const box = [0, 0, finite * CELL, rows * CELL];
    const inner = svg("svg", { width: box[2], height: box[3], viewBox: box.join(" "), preserveAspectRatio: "none", overflow: "hidden" });
    const row = (w) => (rows - w - 0.5) * CELL;
    const ends = { below: 0, above: box[2] };
    for (const [name, values] of finite ? lines : []) {
      const d = path(upright(values.map((value, w) => onMap(values, w) ? [ends[value] ?? column(value), row(w)] : null)));
      if (d) inner.append(svg("path", { class: "halo", d }), svg("path", { class: name, d }));
    }
    if (state.measured && half.some((_, w) => onMap(half, w))) interval.forEach(([low, high], w) => {
      if (low === null || (low === "below" && high === "above")) return;
      const [a, b] = [ends[low] ?? column(low), ends[high] ?? column(high)];
      const y = row(w) + 0.33 * CELL; // below the numbers
      const d = `M${a} ${y - 6}v12M${a} ${y}H${b}M${b} ${y - 6}v12`;
      inner.append(svg("path", { class: "halo", d }), svg("path", { class: "interval", d }));
    });
    const drawing = map.querySelector("svg");
    drawing.setAttribute("viewBox", `0 0 ${samples.length * CELL} ${rows * CELL}`);
    drawing.replaceChildren(inner);
  });
}

/** Whether a line passes through the map in a row: inside, or on its way to a row beyond another edge or inside. */
function onMap(values, w) {
  if (values[w] === null) return false;
  return typeof values[w] === "number" || [values[w - 1], values[w + 1]].some((next) => next != null && next !== values[w]);
}

/** A point without neighbours becomes an upright stroke across its row. */
function upright(points) {
  return points.flatMap((point, w) => point && !points[w - 1] && !points[w + 1] ? [[point[0], point[1] + 0.3 * CELL], [point[0], point[1] - 0.3 * CELL]] : [point]);
}

/** Where a number of samples lies on a map, in its units; beyond the columns as between the last two. */
function column(value) {
  const known = group().samples.map((m, i) => [m, (i + 0.5) * CELL]).filter(([m]) => m !== null);
  if (known.length < 2) return CELL / 2;
  let i = known.findIndex(([m]) => m > value);
  i = i < 0 ? known.length - 1 : Math.max(1, i);
  const [[a, xa], [b, xb]] = [known[i - 1], known[i]];
  return xa + (xb - xa) * Math.log(value / a) / Math.log(b / a);
}

/** Where the frontier is when it is not on a map, in words; null where it is, or where nothing was measured. */
function absentText({ half, cells }) {
  const known = half.filter((value) => value !== null);
  if (!known.length || half.some((_, w) => onMap(half, w))) return null;
  if (!cells.some((cell) => cell && cell[2])) return "No run succeeds.";
  return known[0] === "below" ? "At least half of the runs succeed at every width, however few the examples." : "Fewer than half of the runs succeed at every width.";
}

/** What the lower bound says about this grid, in words: it is usually far to the left of the map. */
function theoryNote() {
  const { theory } = group();
  if (!theory) return null;
  const raised = (digits) => digits.replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
  const about = (value) => value >= 1e5 ? value.toExponential(1).replace(/e\+(\d+)/, (_, power) => ` · 10${raised(power)}`) : number(Math.round(value));
  const excluded = theory.smallest <= theory.needed;
  return html("p", { class: "note theory" }, `Lower bound (pareto, Proposition 3): with r parameters, T steps and m examples, r·T·m/δ must exceed ` +
    `¼·C(n, k) = ${about(theory.needed)} for a chance of success δ = ½. ` + (excluded
    ? "Cells left of that are excluded by it. "
    : `The cheapest cell here spends ${about(theory.smallest)}, so the bound excludes none of them. `) +
    "The dashed curve has its shape: equal cost r·m, laid through the measured line. A measured line that is steeper or flatter shows how SGD trades width for data.");
}
