"""Columns to signs: what is mapped to what, what is refused, and with which remedy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.learners import LowDegreeClassifier, LowDegreeRegressor, ParityNetClassifier, baselines
from fewfire.learners._signs import COLUMN_BLOCK, learn_signs


def names(count):
    return [f"x{column}" for column in range(count)]


@pytest.mark.parametrize(
    ("column", "mapping", "signs"),
    [
        ([-1, 1, 1], (1, -1), [-1, 1, 1]),
        ([0, 1, 1], (0, 1), [1, -1, -1]),
        ([2.5, 7.0, 2.5], (2.5, 7.0), [1, -1, 1]),
        ([-1, 0, 0], (-1, 0), [1, -1, -1]),
        ([True, False, True], (False, True), [-1, 1, -1]),
        (np.array([0, 255, 0], dtype=np.uint8), (0, 255), [1, -1, 1]),
    ],
)
def test_two_values_become_signs(column, mapping, signs):
    table = np.asarray(column)[:, None]
    learned = learn_signs(table, ["x"], None)
    assert learned.mapping == [mapping]
    assert learned.transform(table).dtype == np.int8
    assert learned.transform(table)[:, 0].tolist() == signs


@settings(max_examples=40)
@given(st.integers(1, 2 * COLUMN_BLOCK + 3), st.integers(2, 50), st.integers(0, 2**32))
def test_any_pair_of_values_gives_the_same_polynomial(columns, samples, seed):
    """Recoding every column changes signs of coefficients, never predictions."""
    X = Stream(seed, "data").sign_rows(samples, columns)
    y = Stream(seed, "y").normal(samples)
    recoded = np.where(X > 0, 3.0, -2.0)
    settings = {"method": "regression", "alpha": 1.0, "tol": 1e-10}
    plain = LowDegreeRegressor(1, **settings).fit(X, y)
    again = LowDegreeRegressor(1, **settings).fit(recoded, y)
    assert np.allclose(again.predict(recoded), plain.predict(X), atol=1e-6)
    assert np.array_equal(learn_signs(X, names(columns), None).transform(X), X[:, plain.active_])


def test_more_values_are_refused_with_the_remedy():
    X = np.array([[1, 30.0], [-1, 41.5], [1, 52.0], [1, 30.0], [-1, 60.0], [1, 61.0]])
    with pytest.raises(InvalidArgument) as caught:
        LowDegreeRegressor(1).fit(X, np.arange(6.0))
    assert str(caught.value) == (
        "X must have at most two distinct values in every column; got a column 'x1' with 5 values "
        "(30.0, 41.5, 52.0, 60.0, …). Remedy: threshold it (binarize='median' does so at the median), or one-hot encode it."
    )


def test_values_not_seen_in_training_are_refused():
    model = LowDegreeRegressor(1).fit([[0, 1], [1, -1], [1, 1]], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidArgument) as caught:
        model.predict([[0, 1], [2, 1]])
    assert str(caught.value) == (
        "X may hold only 0 and 1 in column 'x0', as when fitted; got 2. "
        "Remedy: map the value to one of the two, or fit again with it."
    )


def test_the_median_cuts_a_column_in_two():
    table = np.array([[1.0, 0], [2.0, 1], [3.0, 1], [10.0, 0], [4.0, 0]])
    learned = learn_signs(table, names(2), "median")
    assert learned.mapping == [("<= 3", "> 3"), (0.0, 1.0)]
    assert learned.transform(table).tolist() == [[1, 1], [1, -1], [1, -1], [-1, 1], [-1, 1]]
    assert learned.transform(np.array([[-50.0, 0], [3.5, 0]]))[:, 0].tolist() == [1, -1]
    with pytest.raises(InvalidArgument, match="may hold only 0.0 and 1.0 in column 'x1'"):
        learned.transform(np.array([[1.0, 0.5]]))


def test_both_sides_of_a_cut_are_filled():
    column = np.array([[0.0], [3.0], [5.0], [5.0], [5.0], [5.0]])  # the median is the largest value
    learned = learn_signs(column, ["x"], "median")
    assert learned.mapping == [("<= 3", "> 3")]
    assert learned.transform(column)[:, 0].tolist() == [1, 1, -1, -1, -1, -1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_values_are_refused(bad):
    with pytest.raises(ValueError, match="NaN|infinity"):
        LowDegreeRegressor(1).fit([[bad, 1], [1, -1]], [1.0, 2.0])


def test_binarisations_that_do_not_exist_are_refused_by_every_estimator():
    table, labels = np.array([[0.0], [1.0], [2.0]]), [-1, 1, 1]
    for estimator in (
        LowDegreeClassifier,
        ParityNetClassifier,
        baselines.ExhaustiveParity,
        baselines.GaussianElimination,
    ):
        with pytest.raises(InvalidArgument, match="binarize must be one of 'median'; got 'mean'"):
            estimator(binarize="mean").fit(table, labels)
