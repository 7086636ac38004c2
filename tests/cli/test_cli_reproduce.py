"""`fewfire reproduce`: listing, running, writing, and the exit status when a claim fails."""

import json

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.cli import reproduce as command
from fewfire.experiments import recipes
from fewfire.experiments.recipes import Judgement, Recipe, RecipeOutcome

runner = CliRunner()


@pytest.fixture
def small(monkeypatch):
    """Two recipes that take no time: one whose claim holds, one whose claim fails."""
    made = {"a/holds": 1.0, "a/fails": 9.0}

    def find(name):
        def measure(settings):
            entry = Judgement("x is small", "x", made[name], 2.0)
            data = {"rows": [{"x": settings["n"]}]}
            return RecipeOutcome(parameters=settings, judgements=[entry], measured=["x is 1 in [0, 2]"], data=data)

        if name not in made:
            raise ValueError(name)
        return Recipe(name, "a title", 1, "an expectation", "fits", {"quick": {"n": 3}, "paper": {"n": 30}}, measure)

    monkeypatch.setattr(recipes, "RECIPES", tuple(made))
    monkeypatch.setattr(recipes, "find", find)
    monkeypatch.setattr(recipes, "run", lambda name, scale, **options: find(name).run(scale, **options))
    monkeypatch.setattr(command, "save_recipe", lambda result, path: path.write_text(result.recipe))


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
    assert "holds  x is small (x = 1, at most 2)" in result.output
    stored = json.loads((tmp_path / "out" / "a-holds.json").read_text())
    assert stored["passed"] and stored["recipe"] == "a/holds" and stored["scale"] == "quick"
    assert (tmp_path / "out" / "a-holds.png").read_text() == "a/holds"


def test_figures_as_pdf_too(small, tmp_path):
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "-o", str(tmp_path), "--pdf"])
    assert result.exit_code == 0 and (tmp_path / "a-holds.pdf").read_text() == "a/holds"
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "--pdf"])
    assert str(result.exception) == "--pdf needs a folder to write to; got 'no --output'. Remedy: add -o FOLDER."


def test_the_text_says_what_when_and_where(small, tmp_path):
    output = runner.invoke(cli.app, ["reproduce", "a/holds", "-o", str(tmp_path)]).output
    wanted = (
        "a/holds: a title", "takes: about 1 s on two cores", "expect: an expectation", "measured: x is 1 in [0, 2]",
        "holds  x is small (x = 1, at most 2)", "took 0 s", "written to", "drawn in",
    )  # fmt: skip
    places = [output.index(text) for text in wanted]
    assert places == sorted(places)
    longer = runner.invoke(cli.app, ["reproduce", "a/holds", "--scale", "paper"]).output
    assert "takes: minutes to hours" in longer and "written to" not in longer


def test_without_matplotlib_the_result_is_written_and_the_remedy_named(small, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "is_installed", lambda package: False)
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "-o", str(tmp_path)])
    assert result.exit_code == 0 and "not drawn: pip install 'fewfire[plot]'" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["a-holds.json"]


def test_a_failed_claim_is_said_and_gives_status_1(small):
    result = runner.invoke(cli.app, ["reproduce", "--all"])
    assert result.exit_code == 1
    assert "fails  x is small (x = 9, at most 2)" in result.output
    assert "Not confirmed: a/fails" in result.output


def test_a_wrong_name_runs_nothing(small):
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "a/typo"])
    assert result.exit_code != 0 and "expect" not in result.output


def test_a_folder_that_cannot_be_made_is_said_in_a_line(small, tmp_path):
    (tmp_path / "taken").write_text("no folder")
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "-o", str(tmp_path / "taken")])
    assert str(result.exception).startswith(
        f"--output must be a folder that can be written to ({tmp_path}/taken is a file)"
    )
    assert "takes:" not in result.output  # before anything is computed
    assert (tmp_path / "taken").read_text() == "no folder"
