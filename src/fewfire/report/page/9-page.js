// Puts the page together and keeps its parts in step: one choice of group, start, width and samples for all of them.

const at = (id) => document.getElementById(id);

/** The reader chooses a cell; `go` brings its training curves into view. */
function select(place, go) {
  showCell(place, go);
  writeLink();
}

function showCell(place, go) {
  Object.assign(state, place);
  markChoice(at("frontier"));
  keepFocus(() => {
    renderCell(at("cell"));
    renderSuccess(at("success"), select);
    renderConvergence(at("convergence"), select);
  });
  const active = document.activeElement;
  if (active?.matches?.("#frontier td[data-place]") || go) at("frontier").querySelector('[aria-selected="true"]')?.focus({ preventScroll: go });
  if (go) {
    bringIntoView(at("cell"));
    announce(`${at("cell-title").textContent}: curves shown below the maps.`);
  }
}

function bringIntoView(section) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  section.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "nearest" });
}

/** Makes a change that replaces elements, and gives the keyboard back to the one that stands where it was. */
function keepFocus(change) {
  const before = document.activeElement, section = before?.closest?.("section");
  const name = before?.getAttribute?.("aria-label"), { id, selectionStart } = before ?? {};
  change();
  if (!section || before.isConnected) return;
  const again = () => {
    const found = id ? at(id) : name ? [...section.querySelectorAll("[aria-label]")].find((one) => one.getAttribute("aria-label") === name) : null;
    found?.focus({ preventScroll: true });
    if (found?.type === "search") found.setSelectionRange(selectionStart, selectionStart);
    return found;
  };
  if (!again()) requestAnimationFrame(() => requestAnimationFrame(again)); // charts are drawn a frame later
}

function renderPick(section) {
  section.hidden = DATA.groups.length < 2;
  const change = (event) => { showGroup(Number(event.target.value)); writeLink(); };
  section.replaceChildren(html("label", { for: "problem" }, "Problem and training", html("select", { id: "problem", onchange: change },
    DATA.groups.map(({ label }, i) => html("option", { value: i, selected: i === state.group }, label)))));
}

function showGroup(index, place = null) {
  state.group = index;
  const problem = at("problem");
  if (problem) problem.value = index;
  renderFindings(at("findings"));
  keepFocus(() => renderFrontier(at("frontier"), select));
  showCell(place ?? mostTelling(), false);
}

/** The cells behind a square of a map: the training curves of one, the rows of several. */
function showCells(ids, panel, y, x) {
  if (ids.length === 1) {
    const [index, start, place] = PLACES.get(ids[0]);
    const columns = DATA.groups[index].samples.length;
    showGroup(index, { start, width: Math.floor(place / columns), sample: place % columns });
    select({}, true);
    return;
  }
  const fixed = { ...explore.only };
  for (const [key, i] of [[explore.panel, panel], [explore.y, y], [explore.x, x]]) if (key) fixed[key] = columnOf(key).values[i];
  filterCells(Object.entries(fixed).map(([key, value]) => word(key, value)).join(" "));
}

/** What was noted about the sweeps; a tag that not all cells have leads to its cells. */
function renderNotes(section) {
  const chosen = DATA.settings.keys.includes("tags");
  section.hidden = !DATA.notes.length;
  section.replaceChildren(html("h2", { id: "notes-title" }, "Notes"), ...DATA.notes.map(({ name, note, tags }) => html("div", { class: "noted" },
    html("h3", {}, name, ...tags.map((tag) => chosen ? html("button", { type: "button", class: "tag", "aria-label": `Cells tagged ${tag}`, onclick: () => filterCells(`tags=${tag}`) }, tag)
      : html("span", { class: "tag" }, tag))), note ? html("p", {}, note) : null)));
}

function filterCells(text) {
  Object.assign(table, { filter: text, page: 0 });
  renderSettings(at("settings"));
  bringIntoView(at("settings"));
  at("filter").focus({ preventScroll: true });
  announce(at("filter-note").textContent);
  writeLink();
}

/** Draws everything, with the choices that a link names. */
function renderAll() {
  const open = [...document.querySelectorAll("main section")].flatMap((section) => [...section.querySelectorAll("details")].map((part, i) => part.open ? `${section.id} ${i}` : ""));
  readLink();
  renderNotes(at("notes"));
  renderProfile(at("profile"));
  renderTrouble(at("trouble"), filterCells);
  renderSettings(at("settings"));
  renderExplore(at("explore"), showCells);
  renderPick(at("pick"));
  const empty = !DATA.groups.length;
  ["findings", "frontier", "cell", "success", "convergence"].forEach((id) => { at(id).hidden = empty; });
  at("settings").hidden = empty && Boolean(DATA.profile);
  if (!empty) showGroup(state.group, { start: state.start, width: state.width, sample: state.sample });
  for (const place of open.filter(Boolean)) {
    const [id, i] = place.split(" ");
    const part = at(id).querySelectorAll("details")[i];
    if (part) part.open = true;
  }
}

function start() {
  watchTips();
  renderAll();
  addEventListener("hashchange", renderAll);
  addEventListener("beforeprint", () => renderSettings(at("settings"), PRINTED));
  addEventListener("afterprint", () => renderSettings(at("settings")));
}

start();
