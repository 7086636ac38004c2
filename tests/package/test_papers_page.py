"""docs/papers.md: every numbered statement of the four papers is in its table, and the names of the tables exist."""

import pkgutil
import re
from pathlib import Path

import pytest

from fewfire.papers.recipes import RECIPES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "papers.md"
STATEMENTS = {
    "sparse-activations": {
        "Definition": "1 2 15",
        "Theorem": "3 4 5 8 13 14 17 19",
        "Claim": "2.1",
        "Lemma": "6 7 9 10 18",
        "Remark": "11",
        "Conjecture": "12 16 20",
    },
    "pareto": {
        "Theorem": "1 4 5 16 21",
        "Assumption": "2",
        "Proposition": "3",
        "Lemma": "6 7 8 9 10 11 12 13 14 15 17 18 19 20",
    },
    "parities": {"Theorem": "1 2 11", "Lemma": "3 4 5 6 7 8 9 10 12 13 14"},
    "sublinear": {
        "Theorem": "1.1 3.20 3.21 4.8 5.1 5.12",
        "Definition": "3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.9 3.10 4.1 5.4 5.10 5.11 6.1",
        "Remark": "3.8 5.13 5.17",
        "Lemma": "3.11 3.12 3.13 3.14 3.15 3.16 3.17 3.19 4.2 4.4 4.7 5.3 5.8 5.9 5.14 5.15 5.18 6.3",
        "Claim": "3.18 4.3 5.2 5.5 5.6 5.7 5.16 5.19",
        "Proposition": "4.5",
        "Corollary": "4.6 6.2",
        "Algorithm": "1 2",
    },
}
KINDS = "|".join(sorted({kind for kinds in STATEMENTS.values() for kind in kinds}))
NUMBER = r"\d+(?:\.\d+)?"
LISTED = re.compile(rf"({KINDS}|Corollar)(?:s|ies|y)? ({NUMBER}(?:(?:, | and | to |/){NUMBER})*)")
TOP = ("check_sparsity(", "trainer(", "Index(", "ExhaustiveParity(")  # calls of what the same line names in full


def tables():
    """The rows of every paper's table."""
    for paper, text in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        for line in re.findall(r"^\| (?!---|statement)(.*) \|$", text, re.M):
            yield paper, *(cell.strip() for cell in re.split(r"(?<!\\)\|", line))


def numbers(text):
    """3.11, 3.12 and 3.13 of "3.11 to 3.13"."""
    for part in re.split(r", | and |/", text):
        first, _, last = part.partition(" to ")
        chapter, _, number = first.rpartition(".")
        stop = int(last.rpartition(".")[2]) if last else int(number)
        yield from (f"{chapter}.{i}" if chapter else str(i) for i in range(int(number), stop + 1))


ROWS = list(tables())


@pytest.mark.parametrize("paper", STATEMENTS)
def test_every_numbered_statement_is_listed_and_no_other(paper):
    listed = {
        (kind, number)
        for where, statement, _ in ROWS
        if where == paper
        for kind, found in LISTED.findall(statement.partition("; parities")[0])
        for number in numbers(found)
    }
    wanted = {(kind, number) for kind, found in STATEMENTS[paper].items() for number in found.split()}
    assert listed == wanted


@pytest.mark.parametrize(("paper", "statement", "code"), ROWS, ids=lambda cell: cell[:40])
def test_a_line_names_code_or_gives_a_reason(paper, statement, code):
    assert "`" in code or code.startswith("no code: ") or LISTED.search(code), (paper, statement)
    package = ""
    for word in re.findall(r"`([^`]+)`", code):
        if word.startswith("fewfire "):
            continue
        if re.fullmatch(r"[a-z-]+/[a-z0-9-]+", word):
            assert word in RECIPES
            continue
        if word.startswith(TOP) or word.endswith("_") or not re.match(r"\.?[A-Za-z]\w*[.(]|\w+$", word):
            continue
        path = (package + word if word.startswith(".") else word).partition("(")[0]
        package = path.rpartition(".")[0]
        if package == "torch":
            pytest.importorskip("torch")
        pkgutil.resolve_name(f"fewfire.{path}")


def test_every_recipe_is_in_a_table():
    assert set(RECIPES) == {word for row in ROWS for word in re.findall(r"`([a-z-]+/[a-z0-9-]+)`", row[2])}
