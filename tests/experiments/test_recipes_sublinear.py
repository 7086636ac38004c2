"""Pieces of sublinear's recipes on small sizes; the recipes themselves run with the slow tests."""

import math

import numpy as np
import pytest

from fewfire.experiments.recipes.sublinear import activity, digits, robust_loss
from fewfire.problems import SphereSlice


def test_counts_at_the_start_follow_the_normal_law():
    X, _ = SphereSlice(10, 6, 0.3).sample(seed=0)
    row = activity._start(X, 20_000, "quantile", 10)
    assert row["exact"] == pytest.approx(20_000**0.75) and row["pvalue"] > 1e-3
    # 10 independent starts: the mean is within 4 standard errors of a binomial, whatever the inputs share.
    assert abs(row["mean"] - row["exact"]) <= 4 * math.sqrt(row["exact"] / 10)
    assert row["largest"] <= row["bound"] < 20_000
    for name in ("theorem", "lemma"):
        assert activity._start(X, 1000, name, 2)["bound"] > 1000  # Lemma 5.15 says nothing there


def test_a_training_row_and_the_slope():
    X, y = SphereSlice(10, 6, 0.3, "xor").sample(seed=0)
    row = activity._train(X, y, 200, 5)
    assert len(row["mean_active"]) == len(row["max_active"]) == len(row["robust_loss"]) == 5
    assert row["start"] == pytest.approx(200**0.75, rel=0.3)
    assert activity._slope([10, 100, 1000], [5 * 10**0.5, 50, 5 * 10**1.5]) == pytest.approx(0.5)


def test_curves_are_thinned_with_both_ends():
    assert robust_loss._thin(np.arange(25.0)) == [0, 10, 20, 24]
    row = robust_loss._compare(0, 32, 11)
    assert len(row["robust"]["robust_loss"]) == 2 and row["gamma"] >= 0.12 - 1e-6


def test_mcnemar_counts_the_pairs_that_differ():
    first, second = np.array([1, 1, 1, 1, 0, 1], bool), np.array([0, 0, 0, 1, 0, 0], bool)
    assert digits._mcnemar(first, second) == 2**-4 and digits._mcnemar(second, first) == 1.0
    assert digits._mcnemar(first, first) == 1.0
