"""pareto/table2 by hand and from the command line: settings, files written, what is printed without data."""

import numpy as np
import pytest
from typer.testing import CliRunner

from fewfire import InvalidArgument, cli
from fewfire.papers import recipes
from fewfire.papers.pareto.recipes.table2 import Table2Settings

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


def test_settings_choose_the_data_and_a_store_keeps_the_work(folder):
    settings = Table2Settings(("pol", "heloc"), (0.1, 1.0), 2, ("mlp", "dense-4"))
    options = {"settings": settings, "data": folder, "store": folder / "kept.sqlite"}
    outcome = recipes.run("pareto/table2", **options)
    assert "median test error in %, 10% of the training rows" in outcome.data["text"]
    assert "skipped heloc: the data set 'heloc' is not at hand" in outcome.data["text"]
    assert outcome.parameters == {
        "datasets": ["pol", "heloc"], "fractions": [0.1, 1.0], "trials": 2, "models": ["mlp", "dense-4"],
    }  # fmt: skip
    assert {row["trials"] for row in outcome.data["rows"]} == {2} and len(outcome.data["rows"]) == 4
    assert recipes.run("pareto/table2", **options).to_dict() == outcome.to_dict()


def test_no_data_is_no_crash(folder, monkeypatch):
    (folder / "pol.parquet").unlink()
    monkeypatch.setenv("FEWFIRE_DATA", str(folder))
    earlier = folder / "pareto-table2.json"
    earlier.write_text("an earlier result")
    result = runner.invoke(cli.app, ["reproduce", "pareto/table2", "-o", str(folder)])
    assert result.exit_code == 0 and "skipped pol" in result.output
    assert "nothing measured" in result.output
    assert earlier.read_text() == "an earlier result"
    assert not (folder / "pareto-table2.png").exists()


def test_a_recipe_refuses_options_of_another():
    with pytest.raises(
        InvalidArgument, match=r"options of sublinear/activity are not taken by this recipe; got 'trials'\."
    ):
        recipes.run("sublinear/activity", trials=3)
