"""docs/results.md states what docs/results/*.json contain: nothing typed, nothing that fails hidden."""

import runpy
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from fewfire.papers import recipes
from fewfire.papers.recipes import Effect, Judgement, Power, RecipeResult

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "results_page.py"))

HOLDS = Judgement(
    "|c_i| is small",
    "largest |c_i|",
    0.5,
    1.0,
    refuted_by="a larger one",
    effect=Effect("c", 0.5, 0.4, 0.6),
    power=Power("1.5", 0.97),
)
FAILS = replace(HOLDS, claim="and it falls", value=2.0, power=Power("1.5", 0.41))
UNSAID = Judgement("old claim", "x", 0.0, 1.0)


def result(*entries, recipe="pareto/frontier"):
    return RecipeResult(recipe=recipe, scale="quick", parameters={}, judgements=entries, measured=["a*b"], data={})


def made(*entries):
    return TOOL["page"]([result(*entries)]).splitlines()


def test_the_page_follows_the_stored_results(capsys):
    assert TOOL["main"](["--check"]) == 0, capsys.readouterr().out


def test_the_page_names_every_recipe_and_every_claim():
    text = (ROOT / "docs" / "results.md").read_text()
    for found in TOOL["load"](ROOT / "docs" / "results"):
        assert f"### {found.recipe}\n" in text
        for entry in found.judgements:
            assert TOOL["_cell"](entry.claim) in text


def test_every_mark_of_a_recipe_is_about_a_stored_claim():
    for found in TOOL["load"](ROOT / "docs" / "results"):
        for pattern in recipes.find(found.recipe).from_paper:
            assert any(fnmatchcase(entry.claim, pattern) for entry in found.judgements), (found.recipe, pattern)


def test_a_claim_is_the_papers_by_name_or_by_its_beginning():
    parity = recipes.find("pareto/offline-parity")  # at C.1's settings, which are the paper's, and at others
    assert parity.whose("width buys luck") == "the paper's"
    assert parity.whose("width buys luck, decay 0") == "ours"
    assert recipes.find("pareto/over-sparse").whose("k = 2: width grows as n^2") == "the paper's"
    assert recipes.find("pareto/table2").whose("anything") == "ours"


def test_a_claim_that_fails_comes_first_twice():
    lines = made(HOLDS, FAILS)
    assert lines[2].startswith(
        "1 recipes, 2 claims: 1 hold and 1 fails in the stored run. The papers make 2 of them, of which 1 fail; 0 are ours"
    )
    link = "- [`pareto/frontier`](#paretofrontier)"
    assert f"{link}: and it falls (the paper's; largest \\|c\\_i\\| = 2, at most 1)" in lines
    table = [line for line in lines if line.startswith("| ")][2:]
    assert table[0].startswith("| and it falls | the paper's | **fails** |")
    assert table[1] == (
        "| \\|c\\_i\\| is small | the paper's | holds | largest \\|c\\_i\\| = 0.5, at most 1 | c: 0.5 (0.4 to 0.6) "
        "| 0.97 for 1.5 | a larger one |"
    )
    assert "- a\\*b" in lines


def test_weak_tests_are_named():
    assert "- [`pareto/frontier`](#paretofrontier): and it falls (0.41 for 1.5)" in made(FAILS)
    assert not any("fewer than 8 of 10" in line for line in made(HOLDS))


def test_what_is_not_stated_is_reported():
    assert any("not stated yet for some claims of `pareto/frontier`" in line for line in made(HOLDS, UNSAID))
    assert "| old claim | the paper's | holds | x = 0, at most 1 | not stated | not stated | not stated |" in made(
        UNSAID
    )
    assert not any("not stated" in line for line in made(HOLDS))
    assert "Nothing was judged." in made()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "results").mkdir()
    for name in recipes.RECIPES:
        path = ROOT / "docs" / "results" / f"{name.replace('/', '-')}.json"
        (tmp_path / "results" / path.name).write_text(path.read_text())
    (tmp_path / "results.md").write_text(f"before\n{TOOL['BEGIN']}\nold\n{TOOL['END']}\nafter\n")
    return tmp_path


def test_writing_leaves_what_is_around_it_and_comes_to_rest(folder, capsys):
    options = ["--docs", str(folder)]
    assert TOOL["main"]([*options, "--check"]) == 1
    assert "does not follow results/*.json: run python tools/results_page.py" in capsys.readouterr().out
    assert "old" in (folder / "results.md").read_text()
    assert TOOL["main"](options) == 0
    text = (folder / "results.md").read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "\nold\n" not in text
    assert TOOL["main"]([*options, "--check"]) == 0
