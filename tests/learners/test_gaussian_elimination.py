"""Parities over the field of two elements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from fewfire import FewfireWarning
from fewfire._cube import cube
from fewfire.learners.baselines import GaussianElimination
from fewfire.problems import Parity


def rank(X):
    rows, r = (X < 0).astype(int), 0
    for column in range(rows.shape[1]):
        pivot = next((i for i in range(r, len(rows)) if rows[i, column]), None)
        if pivot is None:
            continue
        rows[[r, pivot]] = rows[[pivot, r]]
        for i in range(len(rows)):
            if i != r and rows[i, column]:
                rows[i] ^= rows[r]
        r += 1
    return r


@given(st.integers(1, 70), st.integers(1, 80), st.integers(0, 2**32), st.booleans())
def test_the_fit_agrees_with_every_example_and_is_unique_at_full_rank(n, samples, seed, intercept):
    size = 1 + seed % n
    problem = Parity(n, support=np.random.default_rng(seed).permutation(n)[:size].tolist())
    X, y = problem.sample(samples, seed)
    y = -y if intercept else y
    fitted = GaussianElimination(intercept=intercept).fit(X, y)
    assert fitted.consistent_ and np.array_equal(fitted.predict(X), y)
    unknowns = np.hstack([X, -np.ones((samples, 1), np.int8)]) if intercept else X
    used = unknowns[: fitted.samples_used_]
    assert fitted.rank_ == rank(used) == rank(unknowns)
    assert fitted.unique_ == (fitted.rank_ == n + intercept)
    if fitted.unique_:
        assert fitted.support_ == problem.support and fitted.sign_ == (-1 if intercept else 1)
        assert rank(used[:-1]) == fitted.rank_ - 1  # the last example used was needed


@pytest.mark.parametrize("n", [64, 65, 200])
def test_about_n_examples_recover_any_parity(n):
    counts = []
    for seed in range(20):
        problem = Parity(n, support=np.random.default_rng(seed).permutation(n)[: n // 2].tolist())
        X, y = problem.sample(n + 30, seed)
        fitted = GaussianElimination().fit(X, y)
        assert fitted.support_ == problem.support
        counts.append(fitted.samples_used_)
    # The wait for full rank is n + Σ 1/(2^i − 1) = n + 1.6 in the mean, with standard deviation 1.7.
    assert min(counts) >= n and abs(np.mean(counts) - n - 1.6) < 4 * 1.7 / np.sqrt(20)


def test_classes_need_not_be_signs():
    X = cube(4)
    y = np.where(X[:, 0] * X[:, 3] > 0, "even", "odd")
    fitted = GaussianElimination(intercept=True).fit(X, y)
    assert fitted.support_ == (0, 3) and list(fitted.classes_) == ["even", "odd"]
    assert (fitted.predict(X) == y).all() and fitted.score(X, y) == 1.0
    assert clone(fitted).get_params() == {"intercept": True}


def test_constant_labels_are_the_empty_parity():
    fitted = GaussianElimination().fit(cube(3), np.ones(8))
    assert fitted.support_ == () and (fitted.predict(cube(3)) == 1).all()


def test_noise_is_noticed():
    X, y = Parity(10, 3).sample(200, 0)
    y[3] = -y[3]
    with pytest.warns(
        FewfireWarning,
        match=r"The labels are not a parity of the columns \(noise\?\), so the fit is arbitrary. Remedy: use a learner that bears noise, such as LowDegreeClassifier.",
    ):
        fitted = GaussianElimination().fit(X, y)
    assert not fitted.consistent_ and fitted.support_ != (0, 1, 2)


def test_errors():
    with pytest.raises(ValueError, match=r"X may hold only \+1 and −1; got 0.0. Remedy"):
        GaussianElimination().fit(np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match="y must be a vector of 8 labels, one per row of X; got shape \\(7,\\)."):
        GaussianElimination().fit(cube(3), np.ones(7))
    with pytest.raises(
        ValueError, match="y must have two classes; got a vector with 3. Remedy: encode the labels as \\+1 and −1."
    ):
        GaussianElimination().fit(cube(3), np.arange(8) % 3)
    with pytest.raises(NotFittedError):
        GaussianElimination().predict(cube(3))
