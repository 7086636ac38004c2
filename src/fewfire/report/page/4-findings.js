// What the store says in words: what the maps show, and why runs diverged or failed, in sight.

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
