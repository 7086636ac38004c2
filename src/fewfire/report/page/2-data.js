// The data of the page and the cells in it. A cell is an array; see the names below.

let DATA, UNIT, GOAL, PLACES;

/** Takes data in: those in the page, and newer ones where a sweep is followed. */
function load(data) {
  DATA = data;
  UNIT = data.curves.unit;
  GOAL = data.summary.success_error;
  PLACES = new Map(); // group, start and place of every cell, by its id
  data.groups.forEach((one, g) => one.starts.forEach((start, s) => start.cells.forEach((cell, place) => {
    if (cell) PLACES.set(cell[0], [g, s, place]);
  })));
}

load(JSON.parse(document.getElementById("data").textContent));

/** What is looked at: a group of maps, and in it one start, one width and one number of samples, by their places. */
const state = { group: 0, start: 0, width: 0, sample: 0, measured: true, theory: false };

function group() {
  return DATA.groups[state.group];
}

/** The cell of a start at a width and a number of samples, or null when the sweep has none. */
function cellAt(start, width, sample) {
  return cellOf(group().starts[start].cells[width * group().samples.length + sample]);
}

/** The cell with a number, wherever it is. */
function cellById(id) {
  const [g, s, place] = PLACES.get(id);
  return cellOf(DATA.groups[g].starts[s].cells[place]);
}

function cellOf(row) {
  if (!row) return null;
  const [id, runs, successes, low, high, diverged, failed, early, middle, late] = row;
  return { id, runs, successes, low, high, diverged, failed, early, middle, late, success: runs ? successes / runs : null };
}

/** The training curves of a cell: errors in units of `UNIT`, a list per run, at the steps they share. */
function curvesOf(cell) {
  const found = cell && DATA.curves.cells[cell.id];
  if (!found) return null;
  const [steps, trials, success, test, train] = found;
  return { step: DATA.curves.steps[steps], trials, success, test, train };
}

/** Successes in words, with the interval. */
function successText(cell) {
  if (!cell || !cell.runs) return "no finished runs";
  const range = `95% interval ${percent(cell.low)} to ${percent(cell.high)}`;
  return `${cell.successes} of ${cell.runs} runs succeed, ${percent(cell.success)}, ${range}`;
}

function troubleText(cell) {
  const parts = [];
  if (cell?.diverged) parts.push(`${cell.diverged} diverged`);
  if (cell?.failed) parts.push(`${cell.failed} failed`);
  return parts.join(", ");
}

/** The cell to open with: the one nearest to even odds, where runs differ most; ties go to the widest. */
function mostTelling() {
  let best = null;
  group().starts.forEach((_, start) => group().widths.forEach((_, width) => group().samples.forEach((_, sample) => {
    const cell = cellAt(start, width, sample);
    if (!cell || !curvesOf(cell)) return;
    const distance = Math.abs((cell.success ?? 9) - 0.5) - width * 1e-3 - (cell.successes ? 1 : 0);
    if (!best || distance < best.distance) best = { distance, start, width, sample };
  })));
  return best ?? { start: 0, width: 0, sample: 0 };
}
