"""degree="auto": the degree with the least held-out error, and when it stops."""

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire.learners import LowDegreeClassifier, LowDegreeRegressor
from fewfire.learners._low_degree import MONOMIALS_PER_SAMPLE, choose_degree


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_finds_the_degree_of_a_noisy_polynomial(degree):
    """A parity looks like noise below its degree, so every degree has to be tried."""
    X = sample(3000, 10)
    y = X[:, :degree].prod(axis=1) + 0.5 * Stream(1, "noise").normal(3000)
    model = LowDegreeRegressor(random_state=0).fit(X, y)
    assert model.degree_ == degree
    assert list(model.degree_scores_) == [0, 1, 2, 3, 4]
    assert model.degree_scores_[degree] == min(model.degree_scores_.values())
    # Held-out error of the right degree: noise variance 0.25, times 1 + p/m for the fit; 4 standard deviations.
    excess = len(model.coefficients_) / 2400
    assert model.degree_scores_[degree] == pytest.approx(0.25 * (1 + excess), abs=4 * 0.25 * np.sqrt(2 / 600))


def test_the_final_fit_uses_every_sample():
    X, y = sample(500, 6), sample(500, 7, seed=1)[:, 0] * 1.0
    auto = LowDegreeRegressor(max_degree=1, random_state=3).fit(X, X[:, 2] + 0.1 * y)
    fixed = LowDegreeRegressor(1).fit(X, X[:, 2] + 0.1 * y)
    assert auto.degree_ == 1
    assert np.array_equal(auto.coefficients_, fixed.coefficients_)
    assert fixed.degree_scores_ == {}


def test_classifier_scores_are_error_rates_and_ties_go_to_the_lowest_degree():
    X = sample(2000, 8)
    model = LowDegreeClassifier(random_state=0).fit(X, X[:, 0] * X[:, 1])
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


def test_degrees_with_too_many_monomials_are_not_tried():
    tried = []

    def fit(signs, labels, degree):
        tried.append(degree)
        return np.zeros(sum(1 for _ in range({0: 1, 1: 31, 2: 466}[degree])))

    signs = sample(50, 30)  # 40 to train on: degree 2 has 466 monomials, more than ten a sample
    assert MONOMIALS_PER_SAMPLE * 40 < 466
    random = np.random.RandomState(0)
    degree, scores = choose_degree(signs, np.ones(50), fit, lambda a, b: float(np.mean((a - b) ** 2)), 4, 0.2, random)
    assert (degree, tried, scores) == (0, [0, 1], {0: 1.0, 1: 1.0})


def test_one_sample_cannot_be_split():
    model = LowDegreeRegressor().fit(np.array([[1, -1]]), [2.5])
    assert (model.degree_, model.degree_scores_) == (0, {})
    assert model.predict([[1, -1]]).tolist() == [2.5]
