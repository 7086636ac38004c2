"""degree="auto": the degree with the least held-out error, and when it stops."""

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire.learners import LowDegreeClassifier, LowDegreeRegressor
from fewfire.learners._low_degree._search import MONOMIALS_PER_SAMPLE, dense_degrees, sparse_degrees


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_finds_the_degree_of_a_noisy_polynomial(degree):
    """A parity looks like noise below its degree, so every degree has to be tried."""
    X = sample(3000, 10)
    y = X[:, :degree].prod(axis=1) + 0.5 * Stream(1, "noise").normal(3000)
    model = LowDegreeRegressor(method="regression", alpha=1.0, max_degree=4, random_state=0).fit(X, y)
    assert model.degree_ == degree
    assert list(model.degree_scores_) == [0, 1, 2, 3, 4]
    assert model.degree_scores_[degree] == min(model.degree_scores_.values())
    # Held-out error of the right degree: noise variance 0.25, times 1 + p/m for the fit; 4 standard deviations.
    excess = len(model.coefficients_) / 2400
    assert model.degree_scores_[degree] == pytest.approx(0.25 * (1 + excess), abs=4 * 0.25 * np.sqrt(2 / 600))


def test_the_final_fit_uses_every_sample():
    X, y = sample(500, 6), sample(500, 7, seed=1)[:, 0] * 1.0
    settings = {"method": "regression", "alpha": 1.0}
    auto = LowDegreeRegressor(**settings, max_degree=1, random_state=3).fit(X, X[:, 2] + 0.1 * y)
    fixed = LowDegreeRegressor(1, **settings).fit(X, X[:, 2] + 0.1 * y)
    assert auto.degree_ == 1
    assert np.array_equal(auto.coefficients_, fixed.coefficients_)
    assert fixed.degree_scores_ == {}


def test_classifier_scores_are_error_rates_and_ties_go_to_the_lowest_degree():
    X = sample(2000, 8)
    model = LowDegreeClassifier(method="regression", random_state=0).fit(X, X[:, 0] * X[:, 1])
    assert model.degree_ == 2
    assert model.degree_scores_[2] == model.degree_scores_[3] == 0.0
    assert 0.3 < model.degree_scores_[1] < 0.7


def test_estimation_chooses_too():
    X = sample(4000, 9)
    y = X[:, 0] * X[:, 1] + 0.3 * Stream(2, "noise").normal(4000)
    assert LowDegreeRegressor(method="estimation", random_state=0).fit(X, y).degree_ == 2


def test_the_same_random_state_gives_the_same_scores():
    X, y = sample(300, 6), Stream(3, "y").normal(300)
    scores = [LowDegreeRegressor(random_state=seed).fit(X, y).degree_scores_ for seed in (1, 1, 2)]
    assert scores[0] == scores[1] != scores[2]


def test_degrees_with_too_many_monomials_are_not_fitted_densely():
    """30 columns and 40 samples to train on: degree 2 has 466 monomials, more than ten per sample."""
    assert MONOMIALS_PER_SAMPLE * 40 < 466 < MONOMIALS_PER_SAMPLE * 47
    assert (dense_degrees(30, 40, 4), dense_degrees(30, 47, 4)) == ([1], [1, 2])
    assert dense_degrees(3, 1000, 6) == [1, 2, 3]
    model = LowDegreeRegressor(method="regression", random_state=0).fit(sample(40, 30), Stream(1, "y").normal(40))
    assert list(model.degree_scores_) == [0, 1]


def test_sparse_fits_go_on_while_a_scan_is_cheap():
    assert sparse_degrees(30, 100, 6) == [1, 2, 3, 4]  # 174437 monomials of degree 5 are too many to go on
    assert sparse_degrees(10, 100, 6) == [1, 2, 3, 4, 5, 6]
    assert sparse_degrees(200, 3000, 6) == [1, 2, 3]
    assert sparse_degrees(2000, 10_000, 6) == [1]
    assert sparse_degrees(3, 100, 6) == [1, 2, 3]


def test_one_sample_cannot_be_split():
    model = LowDegreeRegressor().fit(np.array([[1, -1]]), [2.5])
    assert (model.degree_, model.degree_scores_) == (0, {})
    assert model.predict([[1, -1]]).tolist() == [2.5]
