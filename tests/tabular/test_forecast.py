"""The time of a fit, foretold: what it grows with, and that it is told before training where rows are many."""

import re

import numpy as np
import pytest

import fewfire as ff
from fewfire.tabular import AdamW, _forecast, _trees
from fewfire.tabular._forecast import FitRates, Forecast, foretell, spoken
from fewfire.tabular._settings import resolve

RATES = FitRates(network=1e-6, tree=1e-6, boosting=1e-6)


def settings_of(rows, **given):
    return resolve(ff.SparseInitClassifier(**given), rows, judged=False)


def foretold(rows, variants=9, judged=True, **given):
    return foretell(RATES, rows, 50, variants, settings_of(rows, **given), judged=judged)


def test_networks_grow_with_rows_variants_members_and_epochs():
    assert foretold(1000).networks == pytest.approx(1e-6 * 1000 * 9 * 4 * 30 * 0.75)
    tried = 2000 * 9 * 2  # by two networks of each variant, before four of the finalists
    assert foretold(200_000).networks == pytest.approx(1e-6 * (tried + 200_000 * 4 * 4) * 30 * 0.75)
    assert foretold(200_000, n_jobs=2).networks == foretold(200_000).networks / 2
    short = foretold(1000, judged=False, optimiser=AdamW(epochs=7))
    assert short.networks == pytest.approx(1e-6 * 1000 * 9 * 4 * 7) and short.trees == 0


def test_trees_grow_with_rows_and_can_be_absent():
    rows = 150_000  # of which each of four models has 25 trees
    grown = 4 * 1e-6 * (25 * rows * np.log2(rows) + 200 * rows)
    assert foretold(200_000).trees == pytest.approx(grown)
    assert foretold(200_000, trees=False).trees == 0


def test_words():
    told = str(Forecast(200_000, 50, 1200.0, 300.0))
    assert told == ("200,000 rows × 50 columns: about 25 min (networks 20 min, trees 5 min; expect 8 min to 75 min)")
    assert str(Forecast(3000, 5, 20.0, 0.0)).endswith("about 20 s (networks alone; expect 7 s to 60 s)")
    assert [spoken(seconds) for seconds in (0.0, 99.0, 600.0, 7200.0)] == ["1 s", "99 s", "10 min", "2.0 h"]


@pytest.mark.parametrize("estimator", [ff.SparseInitClassifier, ff.SparseInitRegressor])
def test_told_before_training_of_many_rows(estimator, capsys):
    X = np.random.default_rng(0).normal(size=(2100, 3))
    y = (X[:, 0] > 0).astype(int)
    model = estimator((8,), members=2, scaling="rank", gains="none", optimiser=AdamW(epochs=2), verbose=True)
    told = model.set_params(random_state=0).fit(X, y).predict(X)
    first, *epochs = capsys.readouterr().err.splitlines()
    pattern = r"2,100 rows × 3 columns: about \d+ s \(networks \d+ s, trees \d+ s; expect \d+ s to \d+ (s|min)\)"
    assert re.fullmatch(pattern, first) and len(epochs) == 2 + 1  # the last is of the cool-down
    assert np.array_equal(
        told, model.set_params(verbose=False).fit(X, y).predict(X)
    )  # looking at the time changes nothing
    model.set_params(verbose=True).fit(X[:100], y[:100])
    assert "rows ×" not in capsys.readouterr().err


@pytest.mark.parametrize("rows", [6400, 6800])
def test_boosting_is_timed_as_the_folds_models_are_grown(rows, monkeypatch):
    asked = {"forecast": [], "fit": []}
    for of, module in (("forecast", _forecast), ("fit", _trees)):
        monkeypatch.setattr(module, "boosting_rule", recorder(asked[of], _trees.boosting_rule))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2))
    model = ff.SparseInitClassifier(
        (2,), members=4, scaling="standard", gains="none", optimiser=AdamW(epochs=1), verbose=True
    )
    model.fit(X, X[:, 0] > 0)
    assert asked["forecast"] == asked["fit"] == [_trees.SMALL if rows == 6400 else _trees.LARGE]


def recorder(rules, rule_of):
    def recorded(rows):
        rules.append(rule_of(rows))
        return rules[-1]

    return recorded
