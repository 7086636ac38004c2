"""The recipe pareto/table2 on made-up tables: nothing is computed twice, and nothing missing stops it."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_tables import COUNTED, Majority, write_tables

from fewfire import FewfireError, InvalidArgument
from fewfire.papers import recipes
from fewfire.papers.pareto.recipes import table2
from fewfire.papers.pareto.tables import TabularModel, find_models, measure, table_rows, text_table
from fewfire.problems.tabular import DATASETS
from fewfire.sweeps import MemoryStore, SqliteStore

COUNTING = TabularModel("counting", Majority, {})


@pytest.fixture(autouse=True)
def count_anew(monkeypatch):
    COUNTED.clear()
    monkeypatch.setattr("fewfire.problems.tabular._load.fetch", offline)


def offline(info):
    raise OSError("no network")


def test_every_cell_is_measured_once_whatever_is_repeated(tmp_path):
    folder = write_tables(tmp_path, "pol", "credit")
    store = MemoryStore()
    measured, skipped = measure(store, ["pol", "credit"], [0.5, 0.1], 3, [COUNTING], directory=folder)
    assert len(measured) == len(COUNTED) == 2 * 2 * 3 and skipped == {}
    assert {found.status for found in measured} == {"done"} and all(0 <= found.error <= 1 for found in measured)
    # Trials come first, small fractions before large ones: 108 rows are left, 11 and 54 of them are trained on.
    assert COUNTED[:4] == [(0, 11), (0, 11), (0, 54), (0, 54)] and COUNTED[4][0] == 1
    again, _ = measure(store, ["pol", "credit"], [0.5, 0.1], 3, [COUNTING], directory=folder)
    assert len(COUNTED) == 12 and again == measured
    measure(store, ["pol", "credit"], [0.5, 0.1], 4, [COUNTING], directory=folder)
    assert len(COUNTED) == 16  # one more trial of each cell
    measure(store, ["pol"], [0.1], 1, [TabularModel("counting", Majority, {"fail": False})], directory=folder)
    assert len(COUNTED) == 17  # other settings are another measurement


def test_the_error_is_that_of_the_split(tmp_path):
    from fewfire.problems import tabular

    folder = write_tables(tmp_path, "pol")
    (found,), _ = measure(MemoryStore(), ["pol"], [0.3], 1, [COUNTING], directory=folder)
    parts = tabular.split(tabular.load("pol", folder), 0, 0.3)
    answer = parts.y_train.mean() > 0.5
    assert found.error == pytest.approx((parts.y_test != answer).mean())
    assert found.table["dataset"] == "pol" and found.table["fraction"] == 0.3 and found.table["rows"] == 120


def test_failures_are_reported_and_tried_again(tmp_path):
    folder, store = write_tables(tmp_path, "pol"), MemoryStore()
    models = [TabularModel("failing", Majority, {"fail": True})]
    measured, _ = measure(store, ["pol"], [0.5], 2, models, directory=folder)
    assert [found.message for found in measured] == ["ValueError: no wish to learn"] * 2
    again, _ = measure(store, ["pol"], [0.5], 2, models, directory=folder)
    assert len(COUNTED) == 4 and len(list(store.measurements())) == 2
    (row,) = rows = table_rows(again, models)
    assert len(row["failures"]) == 2 and "median" not in row
    assert text_table(rows, {}) == "failed 2 times, failing on pol, 50%: ValueError: no wish to learn\n"


def test_what_is_missing_is_skipped_with_the_reason(tmp_path, monkeypatch):
    folder = write_tables(tmp_path, "pol")
    (tmp_path / "credit.parquet").write_text("not a table")
    monkeypatch.setattr("fewfire.papers.pareto.tables.is_installed", lambda name: False)
    models = [COUNTING, *find_models(["xgboost", "catboost"])]
    measured, skipped = measure(MemoryStore(), ["pol", "credit", "heloc"], [0.5], 1, models, directory=folder)
    assert len(measured) == 1 and list(skipped) == ["xgboost", "catboost", "credit", "heloc"]
    assert skipped["xgboost"].startswith("the package 'xgboost' is not installed")
    assert "credit.parquet is not a Parquet file" in skipped["credit"]
    assert "no heloc.parquet" in skipped["heloc"] and "OpenML could not be asked (no network)" in skipped["heloc"]


def test_the_recipe_reports_medians_ranks_and_the_paper(tmp_path):
    folder = write_tables(tmp_path, "pol", "credit")
    lines = []
    models = ("forest-2-1-10", "forest-3-1-10", "dense-5", "sparse-5")
    settings = table2.Table2Settings(("credit", "pol", "heloc"), (0.5,), 2, models)
    options = {"data": folder, "store": tmp_path / "kept.sqlite", "progress": lines.append}
    outcome = recipes.run("pareto/table2", settings=settings, **options).to_dict()
    assert json.loads(json.dumps(outcome)) == outcome
    rows = {(row["dataset"], row["model"]): row for row in outcome["rows"]}
    assert len(rows) == len(outcome["rows"]) == 2 * (4 + 2)
    for name in ("credit", "pol"):
        row, best = rows[name, "dense-5"], rows[name, "best of paper-network"]
        assert row["trials"] == 2 and row["training_rows"] == 54 and not row["whole"] and row["failures"] == []
        assert row["low"] <= row["median"] <= row["high"] and row["settings"]["width"] == 5
        assert best["median"] == min(rows[name, "dense-5"]["median"], rows[name, "sparse-5"]["median"])
        assert best["chosen"] in ("dense-5", "sparse-5")
    (entry,) = outcome["overall"]
    assert entry["mean"]["dense-5"] == pytest.approx(
        (rows["pol", "dense-5"]["median"] + rows["credit", "dense-5"]["median"]) / 2
    )
    assert entry["datasets"] == 2 and sum(entry["rank"].values()) == 3.0  # two families, ranks 1 and 2
    assert outcome["judgement"] == [] and outcome["passed"]  # no whole data set, no fixed model: nothing to test
    assert len(lines) == 2 * 4 * 2 and lines[0] == "credit, 0.5 of the rows, trial 0, forest-2-1-10"
    text = outcome["text"].splitlines()
    assert text[0] == "median test error in %, 50% of the training rows"
    assert text[1].split() == [
        "forest-2-1-10",
        "forest-3-1-10",
        "dense-5",
        "sparse-5",
        "best",
        "of",
        "forest-grid",
        "best",
        "of",
        "paper-network",
        "paper",
        "network",
        "paper",
        "forest",
    ]
    assert text[2].startswith("credit *") and text[3].startswith("pol *")
    assert text[4].startswith("mean of 2 data sets") and text[5].startswith("rank of 2 data sets")
    assert any(line.startswith("skipped heloc: the data set 'heloc' is not at hand") for line in text)
    lines.clear()
    settings = replace(settings, datasets=("credit", "pol"))
    again = recipes.run("pareto/table2", settings=settings, **options).to_dict()
    assert lines == [] and again["rows"] == outcome["rows"]


def test_whole_sets_are_compared_with_the_paper(tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "pol", replace(DATASETS["pol"], rows=120))
    settings, folder = table2.Table2Settings(("pol",), (1.0,), 1, ("forest",)), write_tables(tmp_path, "pol")
    alone = table2.RECIPE.run(settings=settings, data=folder).to_dict()
    assert alone["rows"][0]["whole"] and alone["rows"][0]["deviation"] == 0
    assert alone["judgement"] == []  # one trial has no spread, so no interval
    outcome = table2.RECIPE.run(settings=replace(settings, trials=4), data=folder).to_dict()
    (row,), (entry,) = outcome["rows"], outcome["judgement"]
    assert row["deviation"] > 0 and entry["effect"]["value"] == pytest.approx(100 * row["median"] - 2.1)
    half = 3.182446 * 100 * row["deviation"] * (np.pi / 2 / 4) ** 0.5  # t of 3 degrees of freedom
    assert entry["value"] == pytest.approx(entry["effect"]["value"] + half) and entry["threshold"] == 3.0
    assert "pol *" not in outcome["text"] and outcome["text"].splitlines()[2].split()[-2:] == ["1.4", "2.1"]
    assert outcome["measured"] == ["forest: above the paper's forest on 0 of 1 cells"]


FOREST, NETWORK = "forest", "network"


def made_up(forest, fewfire, deviation=0.01, trials=5):
    """Rows of four data sets: errors above those that Table 2 prints, in points."""
    printed = {"network": 20.0, "forest": 19.0}
    return [
        {"model": model, "whole": True, "published": printed, "median": (base + excess) / 100, "deviation": deviation,
         "trials": trials, "dataset": str(place)}
        for model, base, excesses in (("forest", 19.0, forest), ("fewfire", 20.0, fewfire))
        for place, excess in enumerate(excesses)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "failing"),
    [
        (made_up([2, 1, 0, 1], [-3, -2, -2, -3]), []),
        (made_up([4, 3, 2, 3], [-3, -2, -2, -3]), [FOREST, f"{FOREST} like"]),  # 3 points on average, surely no less
        (made_up([2, 1, 0, 1], [-0.2, -0.2, 0.1, -0.2]), [NETWORK, f"{NETWORK} like"]),  # below on average, not surely
        (made_up([2, 1, 0, 1], [-9, -1, 0, 0]), [f"{NETWORK} like"]),  # by one set alone
        (made_up([2, 1, 0, 1], [-3, -2, -2, -3], deviation=0.06), [FOREST, NETWORK]),  # trials too noisy to decide
    ],
)
def test_what_refutes_each_claim(rows, failing):
    entries, _ = table2.judge(rows)
    names = {claim[2]: name for claim, name in zip(table2.CLAIMS, (FOREST, NETWORK), strict=True)}
    named = [
        names[entry.claim.rsplit(", on", 1)[0]] + (" like" if entry.claim.endswith("on sets like these") else "")
        for entry in entries
    ]
    assert [name for name, entry in zip(named, entries, strict=True) if not entry.passed] == failing
    for entry in entries:
        assert entry.refuted_by and entry.effect.high == entry.value


def test_the_interval_and_the_power_are_those_of_drawn_medians():
    """Four cells of eleven trials whose median errors are two points below the bound: how often the claim holds."""
    rng, trials, deviation = np.random.default_rng(0), 11, 0.04
    draws = 0.18 + deviation * rng.standard_normal((400, 4, trials))
    held, powers = 0, []
    for errors in draws:
        rows = made_up([], [0.0] * 4, trials=trials)
        for row, values in zip(rows, errors, strict=True):
            row |= {"median": float(np.median(values)), "deviation": float(values.std(ddof=1))}
        (entry, _), _ = table2.judge(rows)
        held += entry.passed
        powers.append(entry.power.probability)
    # The asymptotic variance of medians is a little above that of eleven values, so the claim holds a little more often.
    assert np.mean(powers) == pytest.approx(held / len(draws), abs=0.08)


def test_a_cap_makes_figures_that_do_not_compare(tmp_path, monkeypatch):
    monkeypatch.setattr("fewfire.papers.pareto.tables.CAP", 500)
    folder = write_tables(tmp_path, "pol", rows=10_082)
    measured, _ = measure(MemoryStore(), ["pol"], [0.01, 1.0], 1, [COUNTING], directory=folder)
    rows = {row["fraction"]: row for row in table_rows(measured, [COUNTING])}
    assert rows[0.01]["training_rows"] == 91 and rows[0.01]["whole"]
    assert rows[1.0]["training_rows"] == 500 and not rows[1.0]["whole"]


def test_with_no_data_at_all_the_recipe_reports_it(tmp_path):
    outcome = table2.RECIPE.run("paper", data=tmp_path).to_dict()
    assert outcome["passed"] and outcome["rows"] == [] and set(DATASETS) <= set(outcome["skipped"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"datasets": ["iris"]}, "datasets must be one of 'credit', .*; got 'iris'"),
        ({"fractions": [2.0]}, r"fractions must be a finite number in \(0, 1\]; got 2.0"),
        ({"trials": 0}, "trials must be an integer of at least 1; got 0"),
        ({"models": ["svm"]}, "models must be among fewfire, .*; got 'svm'"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(tmp_path, options, text):
    with pytest.raises(InvalidArgument, match=text):
        settings = replace(table2.RECIPE.scales["quick"], **options)
        table2.RECIPE.run(settings=settings, store=tmp_path / "kept.sqlite", data=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_options_of_other_recipes():
    with pytest.raises(
        InvalidArgument, match="options of sublinear/activity are not taken by this recipe; got 'trials'"
    ):
        recipes.run("sublinear/activity", trials=3)
    with pytest.raises(
        InvalidArgument, match="options of pareto/table2 must be among store, data, progress; got 'width'"
    ):
        recipes.run("pareto/table2", width=3)


# Each training appends a line to a log and takes a moment, so that a kill comes in the middle.
SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[3])
import tiny_tables
from fewfire.sweeps import SqliteStore
from fewfire.papers.pareto.tables import TabularModel, measure
class Slow(tiny_tables.Majority):
    def fit(self, X, y):
        time.sleep(0.02)
        super().fit(X, y)
        with open(sys.argv[2], "a") as log:
            log.write(f"{self.trial} {len(X)}\\n")
        return self
with SqliteStore(sys.argv[1] + "/kept.sqlite", write=True) as store:
    measure(store, ["pol"], [0.1, 0.5], 20, [TabularModel("slow", Slow, {})], directory=sys.argv[1])
"""


def test_killed_and_run_again_it_computes_nothing_twice(tmp_path):
    folder, log = write_tables(tmp_path, "pol"), tmp_path / "log"
    command = [sys.executable, "-c", SCRIPT, str(folder), str(log), str(Path(__file__).parent)]

    def kept():
        try:
            with SqliteStore(folder / "kept.sqlite") as store:
                return len(list(store.measurements()))
        except FewfireError:
            return 0

    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 60
        while kept() < 8:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.005)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    before = kept()
    assert 8 <= before < 40
    assert subprocess.run(command, timeout=60).returncode == 0
    trainings = log.read_text().split("\n")[:-1]
    assert kept() == 40 and len(set(trainings)) == 40
    assert len(trainings) <= 41  # only the one that was killed before it was kept may come twice
