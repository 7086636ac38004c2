"""`fewfire reproduce`: listing, running, writing, and the exit status when a claim fails."""

import json

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.experiments import recipes
from fewfire.experiments.recipes._base import Recipe, judgement, result

runner = CliRunner()


@pytest.fixture
def small(monkeypatch):
    """Two recipes that take no time: one whose claim holds, one whose claim fails."""
    made = {name: Recipe(name, "a title", 1, "an expectation") for name in ("a/holds", "a/fails")}

    def run(name, scale="quick"):
        entry = judgement("x is small", "x", 1.0 if name == "a/holds" else 9.0, 2.0)
        return result(made[name], scale, {"n": 3}, [entry], rows=[{"x": 1}])

    def find(name):
        if name not in made:
            raise ValueError(name)
        return made[name]

    monkeypatch.setattr(recipes, "RECIPES", dict.fromkeys(made, "module"))
    monkeypatch.setattr(recipes, "find", find)
    monkeypatch.setattr(recipes, "run", run)


def test_lists_every_recipe():
    result = runner.invoke(cli.app, ["reproduce"])
    assert result.exit_code == 0
    for name in recipes.RECIPES:
        assert name in result.output and recipes.find(name).name == name


def test_runs_and_writes(small, tmp_path):
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "--output", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert "holds  x is small (x 1, at most 2)" in result.output
    stored = json.loads((tmp_path / "out" / "a-holds.json").read_text())
    assert stored["passed"] and stored["recipe"] == "a/holds" and stored["scale"] == "quick"


def test_a_failed_claim_is_said_and_gives_status_1(small):
    result = runner.invoke(cli.app, ["reproduce", "--all"])
    assert result.exit_code == 1
    assert "fails  x is small (x 9, at most 2)" in result.output
    assert "Not confirmed: a/fails" in result.output


def test_a_wrong_name_runs_nothing(small):
    result = runner.invoke(cli.app, ["reproduce", "a/holds", "a/typo"])
    assert result.exit_code != 0 and "expect" not in result.output
