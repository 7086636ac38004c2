"""Write the README's three lines, one for each kind of reader, from the stored results in docs/.

Each line has one measured number and the command that measures it again. A recipe's number comes from its file in
docs/results/, a benchmark's from the row of docs/results.md that ends with its command. Only what lies between the two
marks of the README is written. With `--check` nothing is written, and lines that do not follow give status 1.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from generated_part import options, renew

from fewfire.papers import recipes

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- Written by tools/readme_lines.py from docs/results: edit those, not this. -->"
END = "<!-- The end of what is written by tools/readme_lines.py. -->"


def lines(docs: Path) -> str:
    """The part between the marks."""
    made = [researcher(docs), practitioner(docs), engineer(docs)]
    return "\n".join([BEGIN, *(f"- {line}" for line in made), END])


def researcher(docs: Path) -> str:
    """How many claims hold, the papers' and ours, over the files of all recipes."""
    held: dict[str, list[bool]] = {"the paper's": [], "ours": []}
    for path in sorted((docs / "results").glob("*.json")):
        file = json.loads(path.read_text(encoding="utf-8"))
        for claim in file.get("judgement", ()) if isinstance(file, dict) else ():
            held[recipes.find(file["recipe"]).whose(claim["claim"])].append(claim["passed"])
    theirs, ours = held.values()
    return (
        "**Researchers** get grids of networks trained by the thousand from one file, and experiments that could have "
        f"refuted what four papers claim: {sum(theirs)} of their {len(theirs)} claims hold, and {sum(ours)} of "
        f"{len(ours)} that we added, such as controls "
        "([`fewfire reproduce --all -o out`](docs/results.md))."
    )


def practitioner(docs: Path) -> str:
    """Mean test errors on sets that nothing was chosen on, every model trained on the same rows."""
    tenth = json.loads((docs / "results" / "kept_aside.json").read_text(encoding="utf-8"))["tenth"]
    mean = {model: f"{tenth['mean'][model]:.1f}%" for model in ("fewfire", "forest", "catboost")}
    return (
        "**With a small table** you get scikit-learn estimators that need no tuning: a mean test error of "
        f"{mean['fewfire']} against a random forest's {mean['forest']} and CatBoost's {mean['catboost']}, on "
        f"{tenth['sets']} sets of KEEL that nothing was chosen on, trained on a tenth of their rows "
        "([`python benchmarks/tabular_kept_aside.py measure --results F`](docs/results/kept_aside.md))."
    )


def engineer(docs: Path) -> str:
    """Tokens per second of a trained transformer, sparse and dense."""
    command, page = "python benchmarks/sparse_transformer.py F", docs / "results.md"
    wanted = r"(\d+) tokens per second against (\d+) dense, [\d.]+×; the same texts"
    sparse, dense = find(benchmark(page, command), wanted, page)
    return (
        "**With a PyTorch model** that has ReLUs you pay for the neurons that fire, exactly: a transformer of 24 M "
        f"parameters decodes the same texts at {sparse} tokens per second, by PyTorch alone at {dense}, on two cores "
        f"([`{command}`](docs/results.md#benchmarks-and-larger-runs-kept-by-hand), after "
        "`sparse_transformer.py F --train` on a GPU); "
        "`fewfire profile MODULE:FACTORY` measures what yours would gain."
    )


def benchmark(page: Path, command: str) -> str:
    """What was measured, from the row of results.md with this command."""
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 3 and f"`{command}`" in cells[2]:
            return cells[1]
    raise SystemExit(f"{page} has no row of `{command}`")


def find(text: str, pattern: str, page: Path) -> tuple[str, ...]:
    """The groups of a pattern, which must be there."""
    found = re.search(pattern, text)
    if found is None:
        raise SystemExit(f"{page}: {pattern!r} is not in: {text}")
    return found.groups()


def main(arguments: list[str] | None = None) -> int:
    """Write the lines, or only compare."""
    chosen = options(__doc__, "--root", ROOT).parse_args(arguments)
    part = lines(chosen.root / "docs")
    return renew(chosen.root / "README.md", part, check=chosen.check, source="docs/results", tool="readme_lines.py")


if __name__ == "__main__":
    raise SystemExit(main())
