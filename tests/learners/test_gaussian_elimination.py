"""Parities over the field of two elements."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewfire import FewfireWarning, InvalidArgument
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
    assert clone(fitted).get_params() == {"intercept": True, "binarize": None}


@pytest.mark.parametrize("sign", [1, 1.0, np.int8(1)])
def test_constant_labels_are_the_empty_parity(sign):
    fitted = GaussianElimination().fit(cube(3), np.full(8, sign))
    assert fitted.support_ == () and (fitted.predict(cube(3)) == 1).all()
    fitted = GaussianElimination(intercept=True).fit(cube(3), np.full(8, -sign))
    assert (fitted.support_, fitted.sign_, fitted.classes_.tolist()) == ((), -1, [-1, 1])
    assert (fitted.predict(cube(3)) == -1).all()


@given(
    st.integers(1, 40), st.integers(2, 60), st.integers(0, 2**32), st.sampled_from([(0, 1), (False, True), (3.5, 7)])
)
def test_other_columns_become_signs(n, samples, seed, values):
    X, y = Parity(n, support=np.random.default_rng(seed).permutation(n)[: 1 + seed % n].tolist()).sample(samples, seed)
    varies = (X[0] != X).any(axis=0)
    signs = np.ascontiguousarray(X[:, varies])
    other = np.where(X < 0, values[1], values[0])
    with warnings.catch_warnings():
        # What varies need not explain the labels, where columns are constant by chance.
        warnings.filterwarnings("ignore", "The labels are not a parity", FewfireWarning)
        fitted = GaussianElimination(intercept=True).fit(other, y)
        if not varies.any():
            assert fitted.support_ == () and not fitted.unique_
            return
        expected = GaussianElimination(intercept=True).fit(signs, y)
    assert fitted.support_ == tuple(np.flatnonzero(varies)[list(expected.support_)].tolist())
    assert (fitted.sign_, fitted.rank_, fitted.samples_used_) == (
        expected.sign_,
        expected.rank_,
        expected.samples_used_,
    )
    assert fitted.unique_ == (expected.unique_ and varies.all())
    assert np.array_equal(fitted.predict(other), expected.predict(signs))


def test_which_value_is_which():
    fitted = GaussianElimination().fit(np.array([[0, -1, 5], [1, 1, 5], [1, -1, 5]]), [-1, -1, 1])
    assert fitted.mapping_ == [(0, 1), (1, -1), (5, None)]
    assert (fitted.support_, fitted.unique_, fitted.consistent_) == ((0, 1), False, True)


# The checks feed real numbers, which are cut in two at the median, and labels that are no parity of them.
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:The labels are not a parity:fewfire.FewfireWarning")
@pytest.mark.no_cover
@parametrize_with_checks([GaussianElimination(binarize="median"), GaussianElimination(True, binarize="median")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_noise_is_noticed():
    X, y = Parity(10, 3).sample(200, 0)
    y[3] = -y[3]
    with pytest.warns(
        FewfireWarning,
        match=r"The labels are not a parity of the columns \(noise\?\), so the fit is arbitrary. Remedy: use a learner that tolerates noise, such as LowDegreeClassifier.",
    ):
        fitted = GaussianElimination().fit(X, y)
    assert not fitted.consistent_ and fitted.support_ != (0, 1, 2)


def test_classes_that_name_no_sign_get_a_hint_at_the_intercept():
    """ "even" sorts before "odd" and so is taken as −1, an odd number of −1s: no parity fits."""
    X, y = Parity(10, 3).sample(200, 0)
    labels = np.where(y > 0, "even", "odd")
    with pytest.warns(FewfireWarning) as caught:
        assert not GaussianElimination().fit(X, labels).consistent_
    assert str(caught[0].message) == (
        "The labels are not a parity of the columns with 'even' taken as odd and 'odd' as even, so the fit is arbitrary. "
        "Remedy: pass intercept=True, which tries both ways round; if the labels are noisy, use a learner that tolerates noise, "
        "such as LowDegreeClassifier."
    )
    fitted = GaussianElimination(intercept=True).fit(X, labels)
    assert fitted.consistent_ and (fitted.support_, fitted.sign_) == ((0, 1, 2), -1)
    labels[3] = "odd" if labels[3] == "even" else "even"
    with pytest.warns(FewfireWarning, match=r"parity of the columns \(noise\?\)"):
        GaussianElimination(intercept=True).fit(X, labels)


def test_errors():
    rule = "X must have at most two distinct values in every column"
    with pytest.raises(
        InvalidArgument, match=rf"{rule}; got a column 'x0' with 3 values \(0, 1, 2\). Remedy: threshold"
    ):
        GaussianElimination().fit([[0, 0], [1, 1], [2, 0]], [-1, 1, 1])
    with pytest.raises(ValueError, match="not compatible with arrays of bytes/strings"):
        GaussianElimination().fit([["a", "b"], ["b", "a"]], [-1, 1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[8, 7\]"):
        GaussianElimination().fit(cube(3), np.ones(7))
    with pytest.raises(InvalidArgument, match="Only binary classification is supported.* got 3 classes. Remedy: wrap"):
        GaussianElimination().fit(cube(3), np.arange(8) % 3)
    with pytest.raises(InvalidArgument, match=r"y must hold at least two classes; got an array of one class \(5\)"):
        GaussianElimination().fit(cube(3), np.full(8, 5))
    with pytest.raises(InvalidArgument, match="binarize must be one of 'median'; got 'mean'"):
        GaussianElimination(binarize="mean").fit(cube(3), np.ones(8))
    fitted = GaussianElimination().fit(cube(3), np.ones(8))
    with pytest.raises(InvalidArgument, match="X may hold only -1 and 1 in column 'x0', as when fitted; got 0. Remedy"):
        fitted.predict(np.zeros((1, 3), dtype=int))
    with pytest.raises(ValueError, match="X has 2 features, but GaussianElimination is expecting 3 features"):
        fitted.predict(cube(2))
    with pytest.raises(NotFittedError):
        GaussianElimination().predict(cube(3))
