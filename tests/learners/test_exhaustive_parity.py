"""ExhaustiveParity: finds noisy parities, says how sure it is, refuses what it cannot search."""

from math import comb

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.learners.baselines import ExhaustiveParity
from fewfire.problems import Parity


# The checks feed real numbers, which are cut in two at the median; none of them is excluded.
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [ExhaustiveParity(k=1, binarize="median"), ExhaustiveParity(k=2, at_most=True, binarize="median")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("k", "noise"), [(1, 0.3), (2, 0.2), (3, 0.25), (4, 0.1), (5, 0.0)])
def test_finds_the_support_and_estimates_the_noise(k, noise):
    support = list(range(3, 3 + k))
    X, y = Parity(18, k, support, noise).sample(500, seed=k)
    model = ExhaustiveParity(k=k).fit(X, y)
    assert model.support_ == tuple(support)
    assert (model.sign_, model.sets_searched_) == (1, comb(18, k))
    # The share of flipped labels has standard deviation at most 1/√2000 = 0.022: within four of them.
    assert abs(model.agreement_ - (1 - noise)) < 0.09
    assert model.agreement_ == (model.predict(X) == y).mean()
    assert model.p_value_ < 1e-6
    assert model.runner_up_agreement_ < model.agreement_


def test_the_negation_is_found_too():
    X, y = Parity(15, 3, [1, 4, 9]).sample(100, seed=0)
    model = ExhaustiveParity(k=3).fit(X, -y)
    assert (model.support_, model.sign_, model.agreement_) == ((1, 4, 9), -1, 1.0)
    assert (model.predict(X) == -y).all()


def test_any_two_classes():
    X, y = Parity(10, 2, [0, 3]).sample(80, seed=0)
    names = np.where(y > 0, "on", "off")
    model = ExhaustiveParity(k=2).fit(X, names)
    assert model.classes_.tolist() == ["off", "on"]
    assert (model.predict(X) == names).all()


def test_at_most_k_prefers_the_smallest_set():
    X, y = Parity(12, 2, [5, 7]).sample(200, seed=3)
    model = ExhaustiveParity(k=4, at_most=True).fit(X, y)
    assert model.support_ == (5, 7)
    assert model.sets_searched_ == sum(comb(12, size) for size in range(5))
    constant_ish = np.where(np.arange(200) == 0, -1, 1)
    model = ExhaustiveParity(k=2, at_most=True).fit(X, constant_ish)
    assert (model.support_, model.agreement_) == ((), 0.995)
    assert (model.predict(X) == 1).all()


def test_other_columns_become_signs():
    X, y = Parity(10, 3, [0, 3, 8], noise=0.1).sample(300, seed=0)
    expected = ExhaustiveParity(k=3).fit(X, y)
    bits = (X < 0).astype(int)
    assert ExhaustiveParity(k=3).fit(bits, y).support_ == (0, 3, 8)
    # A constant column in front is left out; the numbers of the others stay those of the table.
    padded = np.column_stack([np.full(300, 7), bits])
    model = ExhaustiveParity(k=3).fit(padded, y)
    assert (model.support_, model.sets_searched_) == ((1, 4, 9), comb(10, 3))
    assert (model.predict(padded) == expected.predict(X)).all()
    wide = X * np.linspace(0.5, 2, 300)[:, None]
    assert ExhaustiveParity(k=3, binarize="median").fit(wide, y).support_ == (0, 3, 8)


def test_p_value_is_the_union_bound_and_bounds_the_false_alarms():
    X = Stream(0, "inputs").sign_rows(60, 10)
    reached, values = [], []
    for trial in range(200):
        model = ExhaustiveParity(k=2, n_jobs=1).fit(X, Stream(trial, "coins").signs(60))
        agreeing = round(model.agreement_ * 60)
        values.append(model.p_value_)
        reached.append(min(1.0, 2 * 45 * binom.sf(agreeing - 1, 60, 0.5)))
    assert np.allclose(values, reached)
    # At level 0.2 at most a fifth of the searches raise a false alarm; 200 of them deviate by 0.028 (one sigma).
    assert np.mean(np.array(values) <= 0.2) <= 0.2 + 3 * 0.028


def test_one_set_has_no_runner_up():
    X, y = Parity(3, 3).sample(20, seed=0)
    model = ExhaustiveParity(k=3).fit(X, y)
    assert model.runner_up_support_ is None
    assert np.isnan(model.runner_up_agreement_)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (ExhaustiveParity(k=6), r"k must be an integer of at least 1 and at most 5; got 6\. Remedy: larger sets take"),
        (
            ExhaustiveParity(k=4),
            r"k must be at most 3, the number of columns that vary; got 4\. Remedy: choose a smaller",
        ),
        (ExhaustiveParity(k=2, n_jobs=0), "n_jobs must be an integer of at least 1 and at most 1024; got 0"),
        (ExhaustiveParity(k=2, binarize="mean"), "binarize must be one of 'median'; got 'mean'"),
    ],
)
def test_bad_parameters_are_refused(model, match):
    X, y = Parity(3, 2).sample(40, seed=0)
    with pytest.raises(InvalidArgument, match=match):
        model.fit(X, y)
    assert not hasattr(model, "support_")


def test_bad_data_is_refused():
    X, y = Parity(3, 2).sample(40, seed=0)
    with pytest.raises(
        InvalidArgument, match="X must have at most two distinct values in every column; got a column 'x0'"
    ):
        ExhaustiveParity(k=2).fit(X + np.arange(40)[:, None], y)
    with pytest.raises(InvalidArgument, match="y must hold at least two classes; got an array of one class"):
        ExhaustiveParity(k=2).fit(X, np.ones(40))
    model = ExhaustiveParity(k=2).fit(X, y)
    with pytest.raises(InvalidArgument, match="X may hold only -1 and 1 in column 'x0', as when fitted; got 3"):
        model.predict(np.full((1, 3), 3))
