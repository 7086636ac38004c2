// Line charts as SVG, drawn at the size they are shown at so that letters keep theirs.

const MARGIN = { top: 10, right: 14, bottom: 44, left: 60 };

/** A scale from values to pixels; with `zero`, a logarithmic one has room for 0 left of its smallest value. */
function scale(kind, low, high, from, to, zero = false) {
  const place = kind === "log" ? (value) => Math.log10(value <= 0 ? low / 2 : value) : (value) => value;
  const left = place(zero ? 0 : low);
  const span = place(high) - left || 1;
  return (value) => from + (to - from) * (place(value) - left) / span;
}

/** 1, 2, 5 times powers of ten in a range; only the powers when there would be many. */
function logTicks(low, high) {
  const factors = high / low > 2e3 ? [1] : high / low > 60 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const factor of factors) {
      const tick = Number((factor * 10 ** power).toPrecision(3));
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}

/** Drops ticks whose labels would touch the one before. */
function roomy(ticks, place, text, gap = 10) {
  let end = -Infinity;
  return ticks.filter((tick) => {
    const half = text(tick).length * 3.6;
    if (place(tick) - half < end + gap) return false;
    end = place(tick) + half;
    return true;
  });
}

/** The frame of a chart: grid, ticks and titles. Gives the drawing, its scales and a layer to draw on. */
function frame(width, height, label, x, y) {
  const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
  const px = x.place(MARGIN.left + 8, right - 6), py = y.place(bottom, MARGIN.top);
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  for (const tick of y.ticks) {
    drawing.append(svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: py(tick), y2: py(tick) }),
      svg("text", { x: MARGIN.left - 8, y: py(tick) + 4, "text-anchor": "end" }, y.text(tick)));
  }
  for (const tick of roomy(x.ticks, px, x.text)) {
    drawing.append(svg("line", { class: "grid", x1: px(tick), x2: px(tick), y1: bottom, y2: bottom + 5 }),
      svg("text", { x: px(tick), y: bottom + 19, "text-anchor": "middle" }, x.text(tick)));
  }
  const middle = (MARGIN.top + bottom) / 2;
  drawing.append(svg("text", { class: "title", x: (MARGIN.left + right) / 2, y: height - 6, "text-anchor": "middle" }, x.title),
    svg("text", { class: "title", "text-anchor": "middle", transform: `translate(13 ${middle}) rotate(-90)` }, y.title));
  const layer = svg("g");
  drawing.append(layer);
  return { drawing, layer, px, py, left: MARGIN.left, right, bottom };
}

/** A path through points; null breaks it. */
function path(points) {
  let pen = "M";
  return points.map((point) => {
    if (!point) { pen = "M"; return ""; }
    const step = `${pen}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    pen = "L";
    return step;
  }).join("");
}

/** A figure that is drawn again whenever its width changes. */
function figure(draw) {
  const box = html("div", { class: "figure" });
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (width && width !== last) {
      last = width;
      box.replaceChildren(draw(width));
    }
  }).observe(box);
  return box;
}
