"""`fewfire reproduce`: listing, running, writing, and the exit status when a claim fails."""

import io
import json

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.cli import reproduce as command
from fewfire.cli._output import PlainConsole
from fewfire.papers import recipes
from fewfire.papers.recipes import Effect, Judgement, Power, Recipe, RecipeOutcome

runner = CliRunner()


@pytest.fixture
def small(monkeypatch):
    """Two recipes that take no time: one whose claim holds, one whose claim fails."""
    made = {"a/holds": 1.0, "a/fails": 9.0}

    def find(name):
        def measure(settings):
            entry = Judgement("x is small", "x", made[name], 2.0)
            data = {"rows": [{"x": settings["n"]}], "text": "x | 1"}
            return RecipeOutcome(parameters=settings, judgements=[entry], measured=["x is 1 in [0, 2]"], data=data)

        if name not in made:
            raise ValueError(name)
        measure.__module__ = f"papers.{name.replace('/', '.recipes.')}"
        words = {"title": "a title", "expectation": "an expectation", "figure": "fits"}
        return Recipe(**words, seconds=(1, 10), quick={"n": 3}, paper={"n": 30}, measure=measure)

    monkeypatch.setattr(recipes, "RECIPES", tuple(made))
    monkeypatch.setattr(recipes, "find", find)
    monkeypatch.setattr(recipes, "run", lambda name, scale, **options: find(name).run(scale, **options))
    monkeypatch.setattr("fewfire.papers.recipes.save_figure", lambda result, path: path.write_text(result.recipe))
    monkeypatch.setattr(command, "usable_cores", lambda: 1)  # other processes would not have these recipes


def lines(output, *starts):
    """Lines that start so, without the spaces around them."""
    return [line.strip() for line in output.splitlines() if line.strip().startswith(starts)]


def test_lists_every_recipe():
    result = runner.invoke(cli.app, ["reproduce"])
    assert result.exit_code == 0
    for name in recipes.RECIPES:
        assert name in result.output and recipes.find(name).name == name


def test_the_settings_of_both_scales_can_be_listed(small):
    output = runner.invoke(cli.app, ["reproduce", "--settings"]).output
    assert "a/holds, quick: {'n': 3}" in output and "a/fails, paper: {'n': 30}" in output
    assert "{'n'" not in runner.invoke(cli.app, ["reproduce"]).output


def test_runs_and_writes(small, tmp_path):
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "--output", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert lines(result.output, "holds", "test") == ["holds       x is small (ours)", "test        x = 1, at most 2"]
    stored = json.loads((tmp_path / "out" / "a-holds.json").read_text())
    assert stored["passed"] and stored["recipe"] == "a/holds" and stored["scale"] == "quick"
    assert (tmp_path / "out" / "a-holds.png").read_text() == "a/holds"
    assert "x | 1" in result.output and (tmp_path / "out" / "a-holds.txt").read_text() == "x | 1"


def test_figures_as_pdf_too(small, tmp_path):
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "-o", str(tmp_path), "--pdf"])
    assert result.exit_code == 0 and (tmp_path / "a-holds.pdf").read_text() == "a/holds"
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "--pdf"])
    assert str(result.exception) == "--pdf needs a folder to write to; got 'no --output'. Remedy: add -o FOLDER."


def test_the_text_has_what_when_and_where(small, tmp_path):
    output = runner.invoke(cli.app, ["reproduce", "a/holds", "-o", str(tmp_path)]).output
    wanted = (
        "a/holds: a title", "takes: about 1 s on two cores", "expect: an expectation", "measured: x is 1 in [0, 2]",
        "holds       x is small (ours)", "test        x = 1, at most 2", "effect      not stated", "power       not stated",
        "refuted by  not stated", "took 0 s", "written to", "drawn in",
    )  # fmt: skip
    places = [output.index(text) for text in wanted]
    assert places == sorted(places)
    longer = runner.invoke(cli.app, ["reproduce", "a/holds", "--scale", "paper"]).output
    assert "takes: about 10 s on two cores, estimated" in longer and "written to" not in longer


def test_without_matplotlib_the_result_is_written_and_the_remedy_named(small, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "is_installed", lambda package: False)
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "-o", str(tmp_path)])
    assert result.exit_code == 0 and "not drawn: pip install 'fewfire[plot]'" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-holds.json", "a-holds.txt"]


def test_a_failed_claim_is_printed_and_gives_status_1(small):
    result = runner.invoke(cli.app, ["reproduce", "--all"])
    assert result.exit_code == 1
    assert lines(result.output, "fails", "test")[1:] == [
        "fails       x is small (ours)",
        "test        x = 9, at most 2",
    ]
    assert "Not confirmed: a/fails" in result.output


def test_a_wrong_name_runs_nothing(small):
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "a/typo"])
    assert result.exit_code != 0 and "expect" not in result.output


def test_a_folder_that_cannot_be_made_is_reported_in_a_line(small, tmp_path):
    (tmp_path / "taken").write_text("no folder")
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "-o", str(tmp_path / "taken")])
    assert str(result.exception).startswith(
        f"--output must be a folder that can be written to ({tmp_path}/taken is a file)"
    )
    assert "takes:" not in result.output  # before anything is computed
    assert (tmp_path / "taken").read_text() == "no folder"


@pytest.mark.parametrize("columns", [80, 60])
def test_a_claim_is_printed_with_all_that_it_rests_on_in_few_columns(columns):
    entry = Judgement(
        "the sparse start beats the dense one at every width from 100 neurons on",
        "p of Fisher's test, widths from 100",
        2.46427e-05,
        0.01,
        refuted_by="as many successes from a dense start as from a sparse one, or more of them, at widths from 100 on",
        effect=Effect("sparse less dense share of successes [points]", 18.0, 9.25, 26.5),
        power=Power("a gap of 15 points", 0.8713),
    )
    console = PlainConsole(file=io.StringIO(), width=columns)
    console.print(command._verdict(entry, "the paper's"))
    shown = console.file.getvalue().splitlines()
    assert max(map(len, shown)) <= columns and len(shown) <= 12
    assert " ".join(" ".join(shown).split()) == (
        "holds the sparse start beats the dense one at every width from 100 neurons on (the paper's) "
        "test p of Fisher's test, widths from 100 = 2.464e-05, at most 0.01 "
        "effect sparse less dense share of successes [points]: 18 (9.25 to 26.5) "
        "power 0.87 for a gap of 15 points "
        "refuted by as many successes from a dense start as from a sparse one, or more of them, at widths from 100 on"
    )
    assert all(line.startswith(" " * 14) or line[:2] == "  " != line[2:4] for line in shown)  # texts hang in a column


def test_exact_numbers_and_sure_tests_are_named_so():
    assert str(Effect("violations", 0.0, 0.0, 0.0)) == "violations: 0, exact"
    assert str(Power("any violation", 1.0)) == "1.00 for any violation"
    assert str(Power("a drop of 10 points", 0.9999)) == "above 0.99 for a drop of 10 points"
