// The cells that a line of text asks for: `width=100 samples>=1000 failed>0 sparse`. Every word must hold; a word with a
// sign compares a column, any other is looked for in all of them. Quotes keep spaces together. `tags=wide` holds where
// wide is one of the tags.

const SIGNS = {
  "=": (a, b) => a === b, "!=": (a, b) => a !== b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, "<": (a, b) => a < b,
};

/** A test of rows; `heads` names their columns. Gives the words that no column is named by, too. */
function parseFilter(text, heads) {
  const unknown = [];
  const words = [...text.matchAll(/(?:"[^"]*"|[^\s"])+/g)].map(([word]) => word);
  const tests = words.map((word) => {
    const [, name, sign, wanted] = word.match(/^("[^"]*"|[^=<>!"]+)(!=|>=|<=|=|>|<)(.*)$/) ?? [];
    if (!sign) {
      const part = word.replaceAll('"', "").toLowerCase();
      return (row) => row.some((value) => String(value).toLowerCase().includes(part));
    }
    const place = headOf(name.replaceAll('"', ""), heads), value = wanted.replaceAll('"', "");
    if (place < 0) { unknown.push(name); return () => false; }
    return (row) => {
      if (heads[place] === "tags") return [String(row[place]), ...String(row[place]).split(", ")].includes(value) === (sign === "=");
      const [a, b] = [Number(row[place]), Number(value)];
      const texts = Number.isNaN(a) || Number.isNaN(b) || value === "" || row[place] === null;
      if (texts && sign !== "=" && sign !== "!=") return false;
      return texts ? SIGNS[sign](String(row[place]), value) : SIGNS[sign](a, b);
    };
  });
  return { holds: (row) => tests.every((test) => test(row)), unknown };
}

/** The column of a name, of the last part of one (`n` for `problem.n`), or of its beginning. */
function headOf(name, heads) {
  const ways = [(head) => head === name, (head) => head.endsWith(`.${name}`), (head) => head.startsWith(name)];
  for (const way of ways) {
    const found = heads.findIndex(way);
    if (found >= 0) return found;
  }
  return -1;
}

/** A word that asks for one value of a column. */
function word(key, value) {
  return /[\s"]/.test(value) ? `${key}="${value.replaceAll('"', "")}"` : `${key}=${value}`;
}

/** Rows as the text of a CSV file; a text that a spreadsheet would take for a formula gets a quote in front. */
function csvText(rows) {
  const field = (value) => {
    if (value === null || value === undefined) return "";
    let text = String(value);
    if (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/** Hands a text to the reader as a file. */
function saveText(name, text) {
  const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  const link = html("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
