// What a model's MLP blocks do: how many neurons fire, block by block, and what a sparse path gains.

function renderProfile(section) {
  const { profile } = DATA;
  section.hidden = !profile;
  if (!profile) return;
  const top = Math.max(0.01, ...profile.blocks.map(({ high, fire }) => Math.max(high, fire)));
  const heads = ["block", "neurons", "activation", "fire", `0 to ${share(top)}`, "gain, 1 row", "16 rows", "5% to 95% of tokens", "in a call", "90% by", "never", "k", "W", "B"];
  section.replaceChildren(
    html("h2", { id: "profile-title" }, "Which neurons fire"),
    html("p", { class: "note" }, `${profile.model}, up to ${number(profile.tokens)} tokens per block. Fire: mean share of a block's neurons on one token; in a call: on some token of a call; 90% by: the smallest share that makes 90% of all firing; `,
      `k: the most on one token. Gains are dense time over sparse time, measured with ${profile.threads} threads; without one the block cannot be made sparse.`),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "activity by block" }, html("table", { class: "numbers" },
      html("thead", {}, html("tr", {}, heads.map((name, i) => html("th", { scope: "col", class: i < 3 ? "text" : null }, name)))),
      html("tbody", {}, profile.blocks.map((one) => profileRow(one, top))))),
  );
}

/** A share with two digits, below and above one percent alike. */
function share(value) {
  return `${Number((value * 100).toPrecision(2))}%`;
}

function profileRow(one, top) {
  const times = (gain) => gain === null ? "–" : `${gain.toFixed(1)}×`;
  const size = (value) => value === null ? "–" : String(Number(value.toPrecision(3)));
  const place = (value) => 4 + 152 * Math.min(1, value / top);
  const drawing = svg("svg", { class: "chart spark", viewBox: "0 0 160 16", "aria-hidden": "true", "--tone": "var(--accent)" },
    svg("line", { class: "grid", x1: 4, x2: 156, y1: 8, y2: 8 }),
    svg("line", { class: "chosen-whisker", x1: place(one.low), x2: place(one.high), y1: 8, y2: 8 }),
    svg("circle", { class: "dot", cx: place(one.fire), cy: 8, r: 4.5 }));
  const spread = `${share(one.low)} to ${share(one.high)}`;
  const cells = [share(one.fire), drawing, ...one.gains.map(times), spread, share(one.union), share(one.few), number(one.dead), number(one.k), size(one.W), size(one.B)];
  return html("tr", one.reason ? { "data-tip": one.reason } : {}, html("th", { scope: "row", class: "text" }, one.label),
    html("td", { class: "text" }, one.shape), html("td", { class: "text" }, one.activation), cells.map((cell) => html("td", {}, cell)));
}
