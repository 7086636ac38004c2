"""benchmarks/tabular_accuracy.py and tabular_start.py: what they say when data, models or results are missing."""

import importlib
import json
from pathlib import Path

import pytest
from tiny_tables import Majority, write_tables

from fewfire.experiments.tabular import TabularModel

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a benchmark on the models given and the tables in tmp_path; its exit status."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("FEWFIRE_DATA", str(tmp_path))

    def main(name, models=(), *arguments):
        module = importlib.import_module(name)
        monkeypatch.setattr(module, "find_models", lambda names: list(models))
        monkeypatch.setattr("sys.argv", [name, "--fraction", "0.5", "--trials", "1", *arguments])
        return module.main()

    return main


class SmallTables(Majority):
    """Refuses to train on more than 50 rows."""

    def fit(self, X, y):
        if len(X) > 50:
            raise ValueError("too many rows")
        return super().fit(X, y)


GOOD = TabularModel("fewfire", Majority, {})
FOREST = TabularModel("forest", Majority, {})
FAILING = TabularModel("failing", SmallTables, {})
MISSING = TabularModel("elsewhere", Majority, {}, package="fewfire-has-no-such-package")


@pytest.mark.parametrize("name", ["tabular_accuracy", "tabular_start"])
def test_no_data_is_said_and_fails(run, capsys, name):
    assert run(name, [GOOD, FOREST], *(["--models", "a,b"] if name == "tabular_start" else [])) == 1
    assert "no data set found; name their folder" in capsys.readouterr().out


def test_one_model_has_nothing_to_compare_with(run, capsys):
    with pytest.raises(SystemExit):
        run("tabular_start", [GOOD], "--models", "fewfire")
    assert "--models must name two models or more" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["tabular_accuracy", "tabular_start"])
def test_models_and_sets_without_results_are_left_out(run, capsys, tmp_path, name):
    write_tables(tmp_path, "credit", rows=80)
    write_tables(tmp_path, "pol", rows=120)
    more = ["--models", "a,b"] if name == "tabular_start" else []
    run(name, [GOOD, FOREST, FAILING, MISSING], *more)
    out = capsys.readouterr().out
    assert "elsewhere is left out: the package" in out
    assert "pol is left out: failing failed on it" in out
    assert json.loads(out.splitlines()[-1])["sets"] == 1
    assert run(name, [GOOD, MISSING] if more else [GOOD, TabularModel("forest", Majority, {"fail": True})], *more) == 1
    assert "no data set has results of" in capsys.readouterr().out


def test_an_equal_rank_is_enough_against_catboost_alone(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    behind = importlib.import_module("tabular_accuracy").behind
    assert not behind({"fewfire": 1.5, "catboost": 1.5, "forest": 3.0})
    assert behind({"fewfire": 1.5, "catboost": 1.5, "forest": 1.5})
    assert behind({"fewfire": 2.0, "catboost": 1.0, "forest": 3.0})
