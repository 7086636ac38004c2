// Lines on the heat maps. Columns and rows are not evenly spaced numbers, so places are interpolated between centres.

function drawOverlays(section) {
  const note = section.querySelector(".theory");
  if (note) note.hidden = !state.theory;
  section.querySelectorAll(".map").forEach((map, start) => {
    const lines = [];
    if (state.theory && group().theory) lines.push(["equal", group().theory.lines[start]]);
    if (state.measured) lines.push(["measured", group().starts[start].half]);
    const { left, right, top, bottom, tall, column, row } = centres(map);
    const [width, height] = [right - left, bottom - top];
    const inner = svg("svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}`, overflow: "hidden" });
    for (const [name, values] of lines) {
      const ends = { below: left, above: right };
      const d = path(values.map((value, w) => value === null ? null : [ends[value] ?? column(value), row(w)]));
      inner.append(svg("path", { class: "halo", d }), svg("path", { class: name, d }));
    }
    if (state.measured) group().starts[start].interval.forEach(([low, high], w) => {
      if (low === null) return;
      const [a, b] = [low === "below" ? left : column(low), high === "above" ? right : column(high)];
      const y = row(w) + 0.65 * tall; // below the numbers
      inner.append(svg("path", { class: "interval", d: `M${a} ${y - 3}v6M${a} ${y}H${b}M${b} ${y - 3}v6` }));
    });
    map.querySelector("svg").replaceChildren(inner);
  });
}

/** Where samples and widths lie on a map, in its pixels. */
function centres(map) {
  const box = map.getBoundingClientRect();
  const middle = (td, side) => {
    const r = td.getBoundingClientRect();
    return side === "x" ? r.left + r.width / 2 - box.left : r.top + r.height / 2 - box.top;
  };
  const rows = [...map.querySelectorAll("tbody tr")].reverse().map((tr) => middle(tr.querySelector("td"), "y"));
  const cells = [...map.querySelectorAll("tbody tr:first-child td")];
  const xs = cells.map((td) => middle(td, "x"));
  const known = group().samples.map((m, i) => [m, xs[i]]).filter(([m]) => m !== null);
  const half = cells[0].getBoundingClientRect().width / 2;
  const column = (value) => {
    if (known.length < 2) return known[0]?.[1] ?? xs[0];
    let i = known.findIndex(([m]) => m > value);
    i = i < 0 ? known.length - 1 : Math.max(1, i);
    const [[a, xa], [b, xb]] = [known[i - 1], known[i]];
    return xa + (xb - xa) * Math.log(value / a) / Math.log(b / a);
  };
  const tall = cells[0].getBoundingClientRect().height / 2;
  return {
    left: xs[0] - half, right: (known.at(-1)?.[1] ?? xs.at(-1)) + half, top: Math.min(...rows) - tall, bottom: Math.max(...rows) + tall,
    tall, column, row: (width) => rows[width],
  };
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
