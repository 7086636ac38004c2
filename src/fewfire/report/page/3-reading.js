// Reading a chart point by point: the nearest point under the pointer or a finger, or the arrow keys. What is shown is
// also read out by screen readers.

/**
 * Makes a drawing readable. `series` has a list of points per line, each { x, y, text } in the units of the drawing and,
 * where it can be chosen, `choose`.
 */
function readable(drawing, series) {
  const lines = series.filter((points) => points.length);
  if (!lines.length) return drawing;
  const mark = svg("circle", { class: "reading", r: 7, visibility: "hidden" });
  drawing.append(mark);
  drawing.setAttribute("tabindex", 0);
  drawing.setAttribute("aria-describedby", "reading-hint");
  let line = 0, place = -1;
  const hide = () => { mark.setAttribute("visibility", "hidden"); hideTip(); };
  const show = (aloud) => {
    const point = lines[line][place];
    mark.setAttribute("cx", point.x);
    mark.setAttribute("cy", point.y);
    mark.setAttribute("visibility", "visible");
    showTip(point.text, mark.getBoundingClientRect());
    if (aloud) announce(point.text.replaceAll("\n", ", "));
  };
  const follow = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
    let best = 40 ** 2;
    let found = false;
    lines.forEach((points, l) => points.forEach((point, p) => {
      const distance = (point.x - at.x) ** 2 + (point.y - at.y) ** 2;
      if (distance < best) { best = distance; line = l; place = p; found = true; }
    }));
    if (found) show(false); else hide();
  };
  /** The point of another line that is nearest in x. */
  const beside = (other) => {
    const { x } = lines[line][place];
    line = (other + lines.length) % lines.length;
    place = lines[line].reduce((best, point, p) => Math.abs(point.x - x) < Math.abs(lines[line][best].x - x) ? p : best, 0);
  };
  drawing.addEventListener("pointermove", follow);
  drawing.addEventListener("pointerdown", follow);
  drawing.addEventListener("pointerleave", hide);
  drawing.addEventListener("blur", hide);
  drawing.addEventListener("keydown", (event) => {
    const last = () => lines[line].length - 1;
    const moves = {
      ArrowRight: () => { place = Math.min(last(), place + 1); }, ArrowLeft: () => { place = Math.max(0, place - 1); },
      ArrowDown: () => beside(line + 1), ArrowUp: () => beside(line - 1), Home: () => { place = 0; }, End: () => { place = last(); },
    };
    if (event.key === "Escape") hide();
    else if (event.key === "Enter" && place >= 0 && lines[line][place].choose) lines[line][place].choose();
    else if (moves[event.key]) {
      if (place < 0) place = 0; else moves[event.key]();
      show(true);
    } else return;
    event.preventDefault();
  });
  return drawing;
}
