"""`fewfire reproduce pareto/table2`: options, files written, what is said when data or options are wrong."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fewfire import InvalidArgument, cli

runner = CliRunner()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = np.random.default_rng(0).normal(size=(100, 2))
    parquet.write_table(arrow.table({"a": X[:, 0], "b": X[:, 1], "target": X[:, 0] > 0}), tmp_path / "pol.parquet")

    def offline(info):
        raise OSError("no network")

    monkeypatch.setattr("fewfire.problems.tabular._load.fetch", offline)
    return tmp_path


def reproduce(*arguments):
    return runner.invoke(cli.app, ["reproduce", "pareto/table2", *map(str, arguments)])


def test_options_reach_the_recipe_and_results_are_written(folder):
    arguments = ["--datasets", "pol, heloc", "--fractions", "0.1,1", "--trials", 2, "--models", "mlp,dense-4",
                 "--data", folder, "--store", folder / "kept.sqlite", "-o", folder / "out"]  # fmt: skip
    result = reproduce(*arguments)
    assert result.exit_code == 0, result.output
    assert "median test error in %, 10% of the training rows" in result.output
    assert "skipped heloc: the data set 'heloc' is not at hand" in result.output
    outcome = json.loads((folder / "out" / "pareto-table2.json").read_text())
    assert outcome["parameters"] == {
        "datasets": ["pol", "heloc"], "fractions": [0.1, 1.0], "trials": 2, "models": ["mlp", "dense-4"],
    }  # fmt: skip
    assert {row["trials"] for row in outcome["rows"]} == {2} and len(outcome["rows"]) == 4
    assert (folder / "out" / "pareto-table2.txt").read_text() == outcome["text"]
    pytest.importorskip("matplotlib")
    assert (folder / "out" / "pareto-table2.png").read_bytes()[:4] == b"\x89PNG"
    again = reproduce(*arguments)
    assert again.exit_code == 0 and json.loads((folder / "out" / "pareto-table2.json").read_text()) == outcome


def test_no_data_is_no_crash(folder):
    earlier = folder / "pareto-table2.json"
    earlier.write_text("an earlier result")
    result = reproduce("--datasets", "heloc", "--trials", 1, "--data", folder, "-o", folder)
    assert result.exit_code == 0 and "skipped heloc" in result.output
    assert "nothing measured" in result.output
    assert earlier.read_text() == "an earlier result"
    assert not (folder / "pareto-table2.png").exists()


def test_wrong_options(folder):
    result = reproduce("--fractions", "0.1;1")
    assert isinstance(result.exception, InvalidArgument)
    assert (
        str(result.exception)
        == "--fractions must be numbers with commas between them; got '0.1;1'. Remedy: pass 0.01,0.1,1."
    )
    result = runner.invoke(cli.app, ["reproduce", "sublinear/activity", "--trials", "3"])
    assert str(result.exception) == "options of sublinear/activity are not taken by this recipe; got 'trials'."
    assert "expect" not in result.output
