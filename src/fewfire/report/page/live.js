// Following a sweep: asks the server that the page came from how far it is, and for newer data when there are any. Only
// a page that is served has this part. What is looked at stays as it is, since it is in the address.

const EVERY = 2000, AFTER_LOSS = 5000; // milliseconds

const live = { stores: [], lost: false, tags: { "data.json": `"${DATA.tag}"` }, heading: document.title };

/** What the server has under a name, or null where it is what was got last time. */
async function ask(name) {
  const answer = await fetch(name, { cache: "no-store", headers: { "If-None-Match": live.tags[name] ?? "" } });
  if (answer.status === 304) return null;
  if (!answer.ok) throw new Error(await answer.text());
  const found = await answer.json();
  live.tags[name] = answer.headers.get("ETag");
  return found;
}

async function poll() {
  let wait = EVERY;
  if (document.visibilityState === "visible") {
    try {
      live.stores = (await ask("progress.json"))?.stores ?? live.stores;
      const newer = await ask("data.json");
      if (newer) update(newer);
      live.lost = false;
    } catch (error) {
      live.lost = error.message || true;
      wait = AFTER_LOSS;
    }
    renderLive(at("live"));
  }
  setTimeout(poll, wait);
}

/** Draws newer data; what is looked at, where the page is scrolled to and what is typed stay. */
function update(data) {
  const { page } = table, { scrollX, scrollY } = window;
  writeLink();
  load(data);
  document.querySelector(".lede").textContent = data.lede;
  if (data.title) {
    live.heading = data.title;
    document.querySelector("h1").textContent = data.title;
  }
  keepFocus(renderAll);
  if (page) {
    table.page = page;
    drawRows(at("settings"));
  }
  scrollTo({ left: scrollX, top: scrollY, behavior: "instant" });
}

/** A time in words: 8 s, 3 min 20 s, 2 h 5 min. */
function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => whole >= size);
  const [[big, size], [small, rest]] = [units[first], units[first + 1]];
  const left = Math.floor((whole % size) / rest);
  return `${Math.floor(whole / size)} ${big}${left ? ` ${left} ${small}` : ""}`;
}

function renderLive(section) {
  const { stores, lost } = live;
  section.hidden = false;
  const state = lost ? "lost" : stores.every(finished) ? "finished" : "running";
  const told = { lost: "The watcher does not answer: this is what it saw last.", finished: "Finished: nothing is left to do.", running: "Live" }[state];
  if (section.dataset.state !== state) announce(told);
  section.dataset.state = state;
  section.replaceChildren(html("h2", { id: "live-title" }, html("span", { class: "pulse", "aria-hidden": "true" }), told),
    typeof lost === "string" && lost.includes("Remedy") ? html("p", { class: "note" }, lost) : "",
    ...stores.map((store) => storeProgress(store, stores.length > 1)));
  const [done, total] = stores.reduce(([a, b], store) => [a + store.done, b + (store.total ?? NaN)], [0, 0]);
  document.title = total ? `${Math.floor(100 * done / total)}% · ${live.heading}` : live.heading;
}

function finished({ done, total }) {
  return total !== null && done >= total;
}

function storeProgress(store, several) {
  const { done, total, rate, remaining, newest, runs } = store;
  const share = total ? done / total : null;
  const name = several ? store.store : store.sweep || store.store;
  const ago = newest === null ? null : Math.max(0, Date.now() / 1000 - newest);
  const quiet = ago !== null && !finished(store) && ago > Math.max(60, rate ? 20 / rate : 0);
  const fact = (text, value) => html("li", {}, `${text} `, html("b", {}, value));
  return html("div", { class: "store" }, html("h3", {}, name),
    share === null ? null : html("div", { class: "progress", role: "progressbar", "aria-label": `runs done of ${name}`, "aria-valuemin": 0, "aria-valuemax": total, "aria-valuenow": done,
      "aria-valuetext": `${number(done)} of ${number(total)} runs` }, html("div", { "--share": share.toFixed(4) })),
    html("ul", { class: "facts" },
      fact("Done", total === null ? `${number(done)} runs` : `${number(done)} of ${number(total)} runs (${Math.floor(share * 100)}%)`),
      total === null || finished(store) ? null : fact("Left", `${number(total - done)} runs${remaining === null ? "" : `, about ${duration(remaining)}`}`),
      rate ? fact("Rate", rate >= 1 ? `${rate.toFixed(1)} runs/s` : `${(rate * 60).toFixed(1)} runs/min`) : null,
      runs ? fact("Success", percent(store.successes / runs)) : null,
      fact("Diverged", number(store.diverged)), fact("Failed", number(store.failed)),
      ago === null ? null : fact("Last run", `${duration(ago)} ago`)),
    quiet ? html("p", { class: "note" }, "No new run for a while: the sweep has stopped, or its runs take long.") : null);
}

poll();
