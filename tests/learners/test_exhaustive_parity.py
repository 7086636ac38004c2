"""ExhaustiveParity: finds noisy parities, reports how sure it is, refuses what it cannot search."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.learners.baselines import ExhaustiveParity
from fewfire.learners.baselines._exhaustive_parity import correlations, random_sets, search_part, unrank
from fewfire.problems import Parity


# The checks feed real numbers, which are cut in two at the median; none of them is excluded.
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
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


@pytest.mark.parametrize(("n", "size"), [(7, 3), (9, 1), (6, 5)])
def test_ranks_number_every_set_once(n, size):
    sets = unrank(np.arange(comb(n, size)), n, size)
    assert sorted(map(tuple, sets.tolist())) == list(combinations(range(n), size))


def test_correlations_of_given_sets_are_those_of_the_table():
    X, y = Parity(11, 3, noise=0.2).sample(300, seed=0)
    sets = random_sets(11, 3, 60, np.random.default_rng(0))
    assert len({tuple(row) for row in sets.tolist()}) == 60
    expected = [int((y.astype(int) * X[:, row].prod(axis=1)).sum()) for row in sets]
    assert correlations(X, y, sets).tolist() == expected


def test_a_share_of_the_sets_succeeds_as_often_as_the_share():
    """Drawn without repetition, half of the sets hold the support in half of the trials."""
    X, y = Parity(14, 3, support=[2, 5, 11]).sample(60, seed=0)
    part = comb(14, 3) // 2
    models = [ExhaustiveParity(k=3, max_sets=part, random_state=seed).fit(X, y) for seed in range(200)]
    found = [model.support_ == (2, 5, 11) for model in models]
    assert 70 <= sum(found) <= 130  # five standard deviations
    assert all(model.agreement_ == 1.0 for model, hit in zip(models, found, strict=True) if hit)
    assert (
        models[0].sets_searched_ == part
        and models[0].support_ == models[0].__class__(k=3, max_sets=part, random_state=0).fit(X, y).support_
    )


def test_as_many_sets_as_there_are_is_the_whole_search():
    X, y = Parity(10, 2, noise=0.3).sample(100, seed=0)
    whole = ExhaustiveParity(k=2).fit(X, y)
    for count in (45, 1000):
        part = ExhaustiveParity(k=2, max_sets=count, random_state=0).fit(X, y)
        assert (part.support_, part.runner_up_support_, part.sets_searched_) == (
            whole.support_,
            whole.runner_up_support_,
            45,
        )
    most = search_part(X, y, 2, 45, 0)
    assert (most.best.support, most.runner_up.support) == (whole.support_, whole.runner_up_support_)


def test_a_part_of_several_sizes_is_refused():
    X, y = Parity(8, 2).sample(50, seed=0)
    with pytest.raises(
        ValueError, match="max_sets must be None with at_most=True; got 3. Remedy: search the sets of one size."
    ):
        ExhaustiveParity(k=2, at_most=True, max_sets=3).fit(X, y)
    with pytest.raises(ValueError, match="max_sets must be an integer of at least 1; got 0."):
        ExhaustiveParity(k=2, max_sets=0).fit(X, y)
