// The training curves of the chosen cell, one chart per start: training error falls first, test error later (grokking).

function renderCell(section) {
  const { starts, widths, samples } = group();
  const title = `Training at width ${number(widths[state.width])}, ${examples(samples[state.sample])}`;
  const cells = starts.map((_, start) => cellAt(start, state.width, state.sample));
  const shown = cells.map(curvesOf);
  const range = curveRange(shown.filter(Boolean));
  const order = starts.map((_, i) => i);
  section.replaceChildren(
    html("h2", { id: "cell-title" }, title),
    html("p", { class: "note" }, "Error on the training set and on held-out examples against steps, on a logarithmic axis. ",
      "A gap between the two falls is grokking: memorised first, understood later."),
    html("div", { class: "controls" }, key("test error", "line test"), key("training error", "line train"), key(`success: ${percentOf(GOAL)}`, "goal")),
    html("div", { class: "starts" }, order.map((i) => html("div", { class: i === state.start ? "here" : "" },
      html("h3", {}, starts[i].title), facts(cells[i]),
      shown[i] ? figure((width) => curveChart(width, shown[i], range, starts[i].name)) : html("p", { class: "note" }, "No training curves.")))),
    curveNumbers(starts, shown),
  );
}

function key(text, name) {
  return html("span", { class: "key" }, svg("svg", { class: "chart", viewBox: "0 0 26 12", "aria-hidden": "true" },
    svg("path", { class: name, d: "M1 6H25" })), text);
}

function facts(cell) {
  if (!cell) return html("p", { class: "note" }, "Not part of the sweep.");
  const line = (name, value) => html("li", {}, `${name} `, html("b", {}, value));
  const trouble = troubleText(cell);
  const drawn = curvesOf(cell)?.trials.length ?? 0;
  return html("ul", { class: "facts" },
    line("Success", cell.runs ? `${cell.successes} of ${cell.runs}` : "–"),
    cell.runs ? line("95% interval", `${percent(cell.low)}–${percent(cell.high)}`) : null,
    line("Median steps", number(cell.middle)),
    trouble ? line("Trouble", trouble) : null,
    drawn < cell.runs ? line("Drawn", `first ${drawn} of ${cell.runs}`) : null);
}

/** Axes that all charts of the panel share. */
function curveRange(curves) {
  const steps = curves.flatMap((curve) => curve.step);
  const positive = steps.filter((step) => step > 0);
  const tops = curves.flatMap((curve) => [...curve.test, ...curve.train].flat().filter((value) => value !== null));
  const low = positive.length ? positive.reduce((a, b) => Math.min(a, b)) : 1;
  return {
    low, high: Math.max(low * 2, positive.reduce((a, b) => Math.max(a, b), 1)), zero: steps.includes(0),
    top: Math.max(550, tops.reduce((a, b) => Math.max(a, b), 0)) * UNIT,
  };
}

function curveChart(width, curve, range, name) {
  const { low, high, zero, top } = range;
  const step = top <= 0.6 ? 0.1 : top <= 1.2 ? 0.2 : top / 5;
  const ticks = Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => i * step);
  const x = {
    place: (a, b) => scale("log", low, high, a, b, zero), text: (tick) => tick ? short(tick) : "0", title: "steps",
    ticks: [...(zero ? [0] : []), ...logTicks(low, high)],
  };
  const y = { place: (a, b) => scale("linear", 0, top, a, b), ticks, text: (tick) => top <= 1.2 ? percent(tick) : tick.toPrecision(2), title: "error" };
  const won = curve.success.filter(Boolean).length;
  const label = `Training curves from ${name}: ${curve.trials.length} runs, ${won} of them reach ${percentOf(GOAL)} test error`;
  const { drawing, layer, px, py, left, right } = frame(width, Math.max(230, Math.min(330, width * 0.6)), label, x, y);
  layer.append(svg("line", { class: "goal", x1: left, x2: right, y1: py(GOAL), y2: py(GOAL) }));
  const draw = (values, name) => values.forEach((errors) => {
    const points = errors.map((error, i) => error === null ? null : [px(curve.step[i]), py(error * UNIT)]).filter(Boolean);
    layer.append(svg("path", { class: `line ${name}`, d: path(points) }));
  });
  draw(curve.train, "train");
  draw(curve.test, "test");
  curve.test.forEach((errors, run) => {
    const last = errors.findLastIndex((error) => error !== null);
    if (last < 0) return;
    layer.append(svg("circle", { class: `dot test${curve.success[run] ? "" : " hollow"}`, cx: px(curve.step[last]), cy: py(errors[last] * UNIT), r: 4.5 }));
  });
  return readable(drawing, [...readings(curve, curve.test, px, py), ...readings(curve, curve.train, px, py)]);
}

/** What can be read off the curves of one kind: both errors of a run at each step. */
function readings(curve, values, px, py) {
  const share = (errors, i) => errors?.[i] == null ? "–" : percentOf(errors[i] * UNIT);
  return values.map((errors, run) => errors.flatMap((error, i) => error === null ? [] : [{
    x: px(curve.step[i]), y: py(error * UNIT),
    text: `Trial ${curve.trials[run] + 1}, ${curve.success[run] ? "succeeded" : "did not succeed"}\nstep ${number(curve.step[i])}\n` +
      `test error ${share(curve.test[run], i)}\ntraining error ${share(curve.train[run], i)}`,
  }]));
}

function curveNumbers(starts, shown) {
  const rows = () => shown.flatMap((curve, i) => (curve?.trials ?? []).map((trial, run) => {
    const at = (values) => {
      const last = values?.[run]?.findLastIndex((error) => error !== null) ?? -1;
      return last < 0 ? ["–", "–"] : [number(curve.step[last]), percentOf(values[run][last] * UNIT)];
    };
    const [steps, test] = at(curve.test);
    return [starts[i].name, trial + 1, curve.success[run] ? "yes" : "no", steps, test, at(curve.train)[1]];
  }));
  return numbers("How the runs of this cell ended", ["start", "trial", "success", "steps", "test error", "training error"], rows);
}
