"""benchmarks/tabular_*.py: what they say when data, models or results are missing, and the tables they write."""

import importlib
import json
from pathlib import Path

import numpy as np
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


PAGE = """# Measured

### 1% of the training rows

| set | rows | trials | fewfire | forest | CatBoost | s |
| --- | --- | --- | --- | --- | --- | --- |
| credit | 150 | 10 | **25.0** | 26.0 | 25.5 | 1 |
| pol | 91 | 10 | 12.0 | 13.0 | **11.0** | 2 |
| mean | | | 18.5 | 19.5 | 18.2 | |
| mean rank | | | 1.5 | 3.0 | 1.5 | |

Words that stay.
"""


@pytest.fixture
def protocol(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("tabular_protocol")


def results_of(errors, trials=10):
    """Lines of a results file, by set and model."""
    shown = {"rows": 16_714, "fraction": 0.01, "seconds": 2.0}
    return [
        shown | {"set": name, "model": model, "trial": trial, "error": error}
        for (name, model), error in errors.items()
        for trial in range(trials)
    ]


def test_a_table_keeps_rivals_and_tells_intervals(protocol):
    recorded = protocol.page_figures(PAGE, 0.01)
    assert recorded["pol"] == {"fewfire": 12.0, "forest": 13.0, "catboost": 11.0}
    ours = {("credit", "fewfire"): 0.24, ("pol", "fewfire"): 0.105}
    text, figures = protocol.table(results_of(ours | {("pol", "forest"): 0.2}), recorded, 0.01)
    assert "| credit | 150 | 10 | **24.0** | 26.0 | 25.5 | 2 |" in text
    assert figures["mean"] == {"fewfire": 17.25, "forest": 23.0, "catboost": 18.25}  # the forest's 20% replaces 13%
    assert figures["difference"]["catboost"] == (-1.0, -1.5, -0.5)
    assert protocol.page_figures(PAGE.replace(PAGE[PAGE.index("| set") : PAGE.index("\nWords")], text + "\n"), 0.01)


def test_a_rival_of_fewer_trials_is_compared_on_those(protocol):
    """TabM was stopped within its third trial: its figures are of two, and so is fewfire's difference from it."""
    recorded = protocol.page_figures(PAGE, 0.01)
    results = results_of({("credit", "fewfire"): 0.24, ("pol", "fewfire"): 0.105})
    for of in results:
        of["error"] += 0.01 * (of["trial"] < 2)
    results += results_of({("credit", "tabm"): 0.26, ("pol", "tabm"): 0.125}, trials=2)
    results += results_of({("credit", "tabm"): 0.5}, trials=3)[2:]
    text, figures = protocol.table(results, recorded, 0.01)
    assert "| set | rows | trials | fewfire | forest | CatBoost | TabM | s |" in text
    assert text.endswith("| trials |  |  | 10 | 10 | 10 | 2 |  |")
    assert figures["mean"]["tabm"] == 19.25 and figures["difference"]["tabm"] == (-1.0, -1.0, -1.0)
    page = PAGE.replace(PAGE[PAGE.index("| set") : PAGE.index("\nWords")], text + "\n")
    assert protocol.page_trials(page, 0.01)["tabm"] == 2 and protocol.page_trials(PAGE, 0.01)["tabm"] == 10
    alone = [of for of in results if of["model"] == "fewfire"]
    again, _ = protocol.table(alone, protocol.page_figures(page, 0.01), 0.01, protocol.page_trials(page, 0.01))
    assert again == text


def test_tables_are_written_when_complete(protocol, monkeypatch, capsys, tmp_path):
    page, file = tmp_path / "page.md", tmp_path / "results.jsonl"
    page.write_text(PAGE)
    monkeypatch.setattr(protocol, "HEADINGS", {0.01: protocol.HEADINGS[0.01]})
    arguments = ["tabular_protocol", "tables", "--results", str(file), "--page", str(page), "--write"]
    monkeypatch.setattr("sys.argv", arguments)
    assert protocol.main() == 1
    assert "no results yet of credit, pol" in capsys.readouterr().out
    lines = [json.dumps(of) for of in results_of({("credit", "fewfire"): 0.24, ("pol", "fewfire"): 0.105})]
    file.write_text("\n".join([*lines, '{"set": "po']))  # the last was being written when the run was stopped
    assert protocol.main() == 0
    assert "| mean |  |  | 17.25 |" in page.read_text()
    assert page.read_text().endswith("Words that stay.\n")


CHANCES = """### Probabilities

| rows | fewfire | forest |
| --- | --- | --- |
| 1% | 0.900 (0.100) | 0.700 (0.300) |

Words that stay.
"""


def test_probabilities_are_told_beside_errors(protocol):
    results = results_of({("credit", "fewfire"): 0.24, ("pol", "fewfire"): 0.105})
    results += results_of({("credit", "tabm"): 0.26, ("pol", "tabm"): 0.125}, trials=1)
    for of in results:
        of |= {"log_loss": 0.5 if of["set"] == "pol" else 0.25, "ece": 0.01 * (of["trial"] < 5)}
    line = protocol.chances(results, CHANCES).splitlines()[2]
    assert line == "| 1% | 0.375 (0.005) |  | 0.700 (0.300) |  |  |  |  | 0.375 (0.010), 1 trial |"
    page = protocol.put(CHANCES, protocol.CHANCES, protocol.chances(results, CHANCES))
    assert line in page and page.endswith("Words that stay.\n")
    assert protocol.chances(results, page) == protocol.chances(results, CHANCES)


def test_protocol_measures_what_is_missing(protocol, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    np.savez(tmp_path / "pol.npz", X=X, y=(X[:, 0] > 0).astype(np.int8))
    whole, alone = protocol.job(str(tmp_path), "pol", 0.2, 0, "fewfire")
    assert (whole["model"], alone["model"], whole["rows"]) == ("fewfire", "networks", 200)
    assert whole["error"] < 0.3
    assert alone["log_loss"] != whole["log_loss"]


@pytest.mark.slow
def test_members_are_stored_and_their_mixture_judged(monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(BENCHMARKS)
    members, mixtures = map(importlib.import_module, ("tabular_members", "tabular_mixtures"))
    X = np.random.default_rng(0).normal(size=(150, 2)).astype(np.float32)
    np.savez(tmp_path / "pol.npz", X=X, y=(X[:, 0] > 0).astype(np.int8))
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    for family in ("networks", "7 of 8", "trees", "boosting"):
        members.measure_job(str(tmp_path), str(jobs), "pol", 0.3, 100, family)
    with np.load(jobs / "pol_0.3_100_7-of-8.npz") as stored:
        assert np.isnan(stored["held"].astype(float)).mean() == pytest.approx(
            0.5, abs=0.05
        )  # each row of half held out
    mixtures.judge(jobs)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])["against_mixture"]
    assert told["the mixture in use, 0.3"] == 0
    assert {"networks alone, 0.3", "7 of 8, with trees, 0.3", "extra trees, all rows, instead, 0.3"} <= set(told)
