// What is looked at, in the address: a link or a bookmark brings it back. Values go by their names, not by their places,
// so that they still mean the same when a store has grown.

/** The choices of the sections that draw from the table of settings; see 7-explore.js and 8-settings.js. */
const explore = { x: "", y: "", panel: "", measure: "", only: {} };
const table = { sort: "", down: false, filter: "", page: 0 };

/** What is shown where the address says nothing: width against samples, a map per store or start. */
function defaults() {
  const known = (...names) => names.find((name) => DATA.settings.keys.includes(name)) ?? "";
  return { x: known("samples"), y: known("width"), panel: known("store", "start"), measure: "success", sort: "", filter: "" };
}

function writeLink() {
  const link = new URLSearchParams();
  if (DATA.groups.length) {
    const { label, starts, widths, samples } = group();
    if (DATA.groups.length > 1) link.set("problem", label);
    link.set("start", starts[state.start].name);
    link.set("width", widths[state.width]);
    link.set("samples", samples[state.sample] ?? "online");
    if (state.theory) link.set("theory", "1");
  }
  const told = { ...explore, sort: `${table.down ? "-" : ""}${table.sort}`, filter: table.filter };
  for (const [name, value] of Object.entries(defaults())) if (told[name] !== value) link.set(name, told[name]);
  for (const [key, value] of Object.entries(explore.only)) link.append("only", `${key}=${value}`);
  const text = `#${link}`;
  if (text !== location.hash) history.replaceState(null, "", text);
}

/** Takes the choices out of the address; what it names and the store has not is left as it was. */
function readLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  const usual = defaults();
  for (const name of ["x", "y", "panel"]) {
    const key = link.get(name);
    explore[name] = key === "" || columnOf(key) ? key : usual[name];
  }
  explore.measure = Object.hasOwn(MEASURES, link.get("measure")) ? link.get("measure") : usual.measure;
  explore.only = {};
  for (const text of link.getAll("only")) {
    const at = text.indexOf("="), key = text.slice(0, at), value = text.slice(at + 1);
    if (columnOf(key)?.values.includes(value)) explore.only[key] = value;
  }
  const sort = link.get("sort") ?? "";
  Object.assign(table, { sort: sort.replace(/^-/, ""), down: sort.startsWith("-"), filter: link.get("filter") ?? "", page: 0 });
  if (!DATA.groups.length) return;
  const place = (list, value, otherwise) => {
    const found = list.findIndex((one) => String(one ?? "online") === value);
    return found < 0 ? otherwise : found;
  };
  state.group = place(DATA.groups.map(({ label }) => label), link.get("problem"), 0);
  state.theory = link.get("theory") === "1";
  const first = mostTelling();
  state.start = place(group().starts.map(({ name }) => name), link.get("start"), first.start);
  state.width = place(group().widths, link.get("width"), first.width);
  state.sample = place(group().samples, link.get("samples"), first.sample);
}
