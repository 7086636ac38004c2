// Puts the page together and keeps its parts in step: one choice of group, start, width and samples for all of them.

const at = (id) => document.getElementById(id);

/** Choose a cell; `go` brings its training curves into view. */
function select(place, go) {
  Object.assign(state, place);
  markChoice(at("frontier"));
  renderCell(at("cell"));
  renderSuccess(at("success"), select);
  renderConvergence(at("convergence"), select);
  const active = document.activeElement;
  if (active?.matches?.("td[data-place]") || go) at("frontier").querySelector('[aria-selected="true"]')?.focus({ preventScroll: go });
  if (go) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    at("cell").scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "nearest" });
    at("status").textContent = `${at("cell-title").textContent}: curves shown below the maps.`;
  }
}

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

function showGroup(index) {
  Object.assign(state, { group: index });
  renderFindings(at("findings"));
  renderFrontier(at("frontier"), select);
  select(mostTelling(), false);
}

function start() {
  watchTips(at("tip"));
  renderProfile(at("profile"));
  renderSettings(at("settings"));
  addEventListener("beforeprint", () => {
    renderSettings(at("settings"), PRINTED);
    at("settings").querySelectorAll("details").forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => renderSettings(at("settings")));
  if (!DATA.groups.length) {
    ["findings", "frontier", "cell", "success", "convergence"].forEach((id) => { at(id).hidden = true; });
    at("settings").hidden = Boolean(DATA.profile);
    return;
  }
  if (DATA.groups.length > 1) {
    at("pick").hidden = false;
    at("pick").append(html("label", {}, "Problem and training", html("select", { onchange: (event) => showGroup(Number(event.target.value)) },
      DATA.groups.map(({ label }, i) => html("option", { value: i }, label)))));
  }
  showGroup(0);
}

start();
