"""Write the claims of docs/results.md from docs/results/*.json, the files of `fewfire reproduce --all -o docs/results`.

Whose a claim is, the paper's or ours, is a field of its recipe (`Recipe.from_paper`) and not in these files. Only what
lies between the two marks of the page is written; benchmarks and notes around it are kept by hand. Claims
that failed come first. With `--check` nothing is written, and a page that does not follow its files gives status 1.
"""

from __future__ import annotations

import json
from pathlib import Path

from generated_part import options, renew

from fewfire.papers import recipes
from fewfire.papers.recipes import Judgement, RecipeResult

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN = "<!-- Written by tools/results_page.py from results/*.json: edit those, not this. -->"
END = "<!-- The end of what is written by tools/results_page.py. -->"
NOT_STATED = "not stated"


def load(folder: Path) -> list[RecipeResult]:
    """The stored result of every recipe."""
    paths = [folder / f"{name.replace('/', '-')}.json" for name in recipes.RECIPES]
    return [RecipeResult.from_dict(json.loads(path.read_text(encoding="utf-8"))) for path in paths]


def page(results: list[RecipeResult]) -> str:
    """The part between the marks."""
    lines = [BEGIN, "", *_summary(results)]
    for result in results:
        lines += ["", *_section(result)]
    return "\n".join([*lines, "", END])


def _summary(results: list[RecipeResult]) -> list[str]:
    """How many claims passed, and every one that did not."""
    claims = [(result, entry) for result in results for entry in result.judgements]
    failed = [(result, entry) for result, entry in claims if not entry.passed]
    silent = [result for result in results if any(not _stated(entry) for entry in result.judgements)]
    weak = [(result, entry) for result, entry in claims if entry.power and entry.power.probability < 0.8]
    seconds = sum(recipes.find(result.recipe).work("quick") for result in results) / 2
    own = [entry for result, entry in claims if _whose(result, entry) == "ours"]
    lost = sum(not entry.passed for entry in own)
    lines = [
        f"{len(results)} recipes, {len(claims)} claims: {len(claims) - len(failed)} hold and {len(failed)} "
        f"{'fails' if len(failed) == 1 else 'fail'} in the stored run. The papers make {len(claims) - len(own)} of "
        f"them, of which {len(failed) - lost} fail; {len(own)} are ours, of which {lost} fail. All recipes at quick "
        f"scale, side by side, take about {round(seconds / 60)} minutes on two idle cores.",
    ]
    if failed:
        lines += ["", "Claims that fail:", ""]
        lines += [
            f"- {_link(result)}: {_cell(entry.claim)} ({_whose(result, entry)}; {_cell(entry.test)})"
            for result, entry in failed
        ]
    if weak:
        lines += ["", "Tests that would notice the effect of stated size in fewer than 8 of 10 runs:", ""]
        lines += [f"- {_link(result)}: {_cell(entry.claim)} ({_cell(str(entry.power))})" for result, entry in weak]
    if silent:
        names = ", ".join(f"`{result.recipe}`" for result in silent)
        lines += ["", f"Effect, power or the refuting outcome are not stated yet for some claims of {names}."]
    return lines


def _section(result: RecipeResult) -> list[str]:
    """The claims of a recipe, those that failed first, with the command and the picture."""
    recipe, file = recipes.find(result.recipe), result.recipe.replace("/", "-")
    scale = "" if result.scale == "quick" else f" --scale {result.scale}"
    entries = sorted(result.judgements, key=lambda entry: entry.passed)
    return [
        f"### {result.recipe}",
        "",
        f"{recipe.title}. `fewfire reproduce {result.recipe}{scale} -o docs/results`; [picture](results/{file}.png), "
        f"[numbers](results/{file}.json).",
        "",
        *_table(result, entries),
        *([""] if result.measured else []),
        *(f"- {_cell(line)}" for line in result.measured),
    ]


def _table(result: RecipeResult, entries: list[Judgement]) -> list[str]:
    if not entries:
        return ["Nothing was judged."]
    rows = [
        (
            _cell(entry.claim),
            _whose(result, entry),
            "holds" if entry.passed else "**fails**",
            _cell(entry.test),
            _cell(str(entry.effect or NOT_STATED)),
            _cell(str(entry.power or NOT_STATED)),
            _cell(entry.refuted_by or NOT_STATED),
        )
        for entry in entries
    ]
    return [
        "| claim | whose | verdict | test | effect (95%) | power | refuted by |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _whose(result: RecipeResult, entry: Judgement) -> str:
    return recipes.find(result.recipe).whose(entry.claim)


def _stated(entry: Judgement) -> bool:
    return bool(entry.effect and entry.power and entry.refuted_by)


def _link(result: RecipeResult) -> str:
    """To the recipe's section, by the anchor that GitHub makes from its heading."""
    return f"[`{result.recipe}`](#{result.recipe.replace('/', '')})"


def _cell(text: str) -> str:
    """One line that Markdown shows as it is."""
    escaped = " ".join(text.split()).replace("\\", "\\\\")
    for mark in "|*_<>":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or only compare."""
    chosen = options(__doc__, "--docs", DOCS).parse_args(arguments)
    part = page(load(chosen.docs / "results"))
    return renew(chosen.docs / "results.md", part, check=chosen.check, source="results/*.json", tool="results_page.py")


if __name__ == "__main__":
    raise SystemExit(main())
