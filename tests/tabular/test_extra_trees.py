"""Extra trees: C++ and its twin agree to the bit, the rule is kept, and scikit-learn's predict as well."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from fewfire import _extension
from fewfire._random import Stream
from fewfire.tabular._extra_trees import ExtraTreesRule, grown_trees, whole_targets
from fewfire.tabular._flat_trees import joined, narrowed

SEEDS = np.arange(5, dtype=np.uint64)


def table_of(rows, columns, seed=0):
    """Numbers, whole ones among them, a constant column, one without values, and gaps."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, columns))
    table[:, 0] = np.round(table[:, 0])
    table[rng.random(table.shape) < 0.1] = np.nan
    if columns > 5:
        table[:, 1], table[:, 2] = 1.0, np.nan
    return narrowed(table)


def both(of, rows):
    trees = grown_trees(of, rows, ExtraTreesRule(), SEEDS)
    with _extension.without_extension():
        return trees, grown_trees(of, rows, ExtraTreesRule(), SEEDS)


@pytest.mark.parametrize(("rows", "columns"), [(300, 7), (300, 1), (40, 70), (5, 2), (1, 2)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [0, 3])
def test_the_twin_grows_the_same_trees_to_the_bit(rows, columns, weighted, classes):
    rng = np.random.default_rng(1)
    target = np.eye(3)[rng.integers(0, 3, rows)] if classes else rng.normal(size=(rows, 2)) * [1, 1e6]
    weight = rng.random(rows) * (np.arange(rows) % 3 > 0) + 1e-12 if weighted else None
    of = whole_targets(table_of(rows, columns), target, weight, centred=not classes)
    trees, twins = both(of, np.arange(rows)[rng.random(rows) < 0.8] if rows > 1 else np.zeros(1, np.int64))
    for name in ("forks", "roots", "first", "values"):
        assert np.array_equal(getattr(trees, name), getattr(twins, name)), name
    assert len(trees.values) == len(trees.forks) + len(SEEDS)


def test_a_tree_is_known_by_its_seed_and_pieces_can_be_joined():
    table = table_of(200, 6)
    of = whole_targets(table, np.nan_to_num(table[:, 3:4]), None, centred=True)
    rows, rule = np.arange(200), ExtraTreesRule()
    whole, pieces = (
        grown_trees(of, rows, rule, SEEDS),
        [grown_trees(of, rows, rule, SEEDS[i : i + 2]) for i in (0, 2, 4)],
    )
    again = joined(pieces)
    for name in ("forks", "roots", "first", "values"):
        assert np.array_equal(getattr(whole, name), getattr(again, name)), name


def test_leaves_say_the_mean_of_their_rows():
    table, rng = table_of(120, 6), np.random.default_rng(2)
    target, weight, rows = rng.normal(size=(120, 1)), rng.random(120) + 0.5, np.arange(100)
    for given in (None, weight):
        trees = grown_trees(whole_targets(table, target, given, centred=True), rows, ExtraTreesRule(3), SEEDS[:1])
        said = trees.sums(table[rows], 1)[:, 0]
        for value in np.unique(said):
            inside = np.flatnonzero(said == value)
            assert len(inside) >= 3
            mean = np.average(target[inside, 0], weights=None if given is None else given[inside])
            assert value == pytest.approx(mean, abs=1e-6)


def test_rows_that_weigh_next_to_nothing_still_have_a_mean():
    table, rng = table_of(60, 6), np.random.default_rng(4)
    target, weight = rng.integers(0, 2, (60, 1)), np.where(np.arange(60) < 1, 1e10, 1.0)
    light = np.arange(1, 60)
    for trees in both(whole_targets(table, target, weight, centred=False), light):
        plain = grown_trees(whole_targets(table, target, None, centred=False), light, ExtraTreesRule(), SEEDS)
        np.testing.assert_allclose(trees.sums(table, 1), plain.sums(table, 1), atol=1e-6)  # their weights are even


def test_divisions_lie_within_the_rows_and_missing_values_take_a_side():
    rng = np.random.default_rng(3)
    table = narrowed(rng.random((400, 3)))
    table[::2, 1] = np.nan
    target = np.isnan(table[:, 1:2]).astype(np.float32)
    trees = grown_trees(
        whole_targets(table, target, None, centred=False), np.arange(400), ExtraTreesRule(2, 1.0), SEEDS
    )
    apart = trees.forks[trees.roots]  # a division of missing from known values is tried beside random places, and wins
    assert (apart[:, 0] == 2).all() and np.isinf(apart[:, 1].view(np.float32)).all()
    assert np.array_equal(trees.sums(table, 1) / len(SEEDS), target)
    known = narrowed(np.where(np.isnan(table), 0.0, table))
    within = grown_trees(
        whole_targets(known, known[:, :1] ** 2, None, centred=True), np.arange(400), ExtraTreesRule(), SEEDS
    )
    thresholds = within.forks[:, 1].view(np.float32)
    assert (thresholds >= 0).all() and (thresholds < 1).all()
    more_left = (known[:, within.forks[0, 0] >> 1] <= thresholds[0]).mean() > 0.5
    assert within.forks[0, 0] & 1 == more_left  # unseen missing values go with the more


def test_thresholds_are_uniform_and_columns_tried_alike():
    table = np.repeat(np.array([[0.0, 0.0], [1.0, 1.0]], np.float32), 2, axis=0)
    table[:, 1] += 1
    of = whole_targets(table, np.array([[0.0], [0.0], [1.0], [1.0]]), None, centred=True)
    trees = grown_trees(of, np.arange(4), ExtraTreesRule(), np.arange(4000, dtype=np.uint64))
    column, threshold = trees.forks[:, 0] >> 1, trees.forks[:, 1].view(np.float32)
    assert len(column) == 4000 and abs(column.mean() - 0.5) < 4 * 0.5 / 4000**0.5
    places = np.sort(threshold - column)
    assert np.abs(places - (np.arange(4000) + 0.5) / 4000).max() < 1.95 / 4000**0.5  # Kolmogorov and Smirnov at 0.1%


def test_targets_that_are_all_the_same_are_one_leaf():
    of = whole_targets(table_of(30, 6), np.full((30, 1), 7.0), None, centred=True)
    for trees in both(of, np.arange(30)):
        assert trees.forks.shape == (0, 4) and trees.values.tolist() == [[7.0]] * len(SEEDS)


def test_scikit_learns_predict_as_well():
    X, y = make_classification(2000, 12, n_informative=5, flip_y=0.05, random_state=0)
    shown, seeds = narrowed(X), Stream(0, "trees").words(200).view(np.uint64)
    rule = {"n_estimators": 100, "min_samples_leaf": 2, "max_features": 0.5, "random_state": 0}
    trees = grown_trees(whole_targets(shown, y[:, None], None, centred=False), np.arange(1000), ExtraTreesRule(), seeds)
    mine = trees.sums(shown[1000:], 1)[:, 0] / 100
    theirs, others = (
        ExtraTreesClassifier(**rule | {"random_state": seed}).fit(X[:1000], y[:1000]).predict_proba(X[1000:])[:, 1]
        for seed in (0, 1)
    )
    rights = [np.mean((said > 0.5) == y[1000:]) for said in (mine, theirs)]
    assert abs(rights[0] - rights[1]) < 0.02 < 0.8 < rights[0]
    distances = [np.mean((mine - theirs) ** 2), np.mean((others - theirs) ** 2)]
    assert distances[0] < 1.2 * distances[1]  # as far from them as they are from each other
    X, y = make_friedman1(2000, noise=0.5, random_state=0)
    X[::5, 3] = np.nan
    shown = narrowed(X)
    trees = grown_trees(whole_targets(shown, y[:, None], None, centred=True), np.arange(1000), ExtraTreesRule(), seeds)
    theirs = ExtraTreesRegressor(**rule).fit(shown[:1000], y[:1000]).predict(shown[1000:])
    errors = [np.mean((said - y[1000:]) ** 2) for said in (trees.sums(shown[1000:], 1)[:, 0] / 100, theirs)]
    assert abs(errors[0] / errors[1] - 1) < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.array([9], np.int32)}, "rows must be numbers of rows"),
        ({"rows": np.zeros(0, np.int32)}, "rows must not be empty"),
        ({"tried": 3}, "tried must be a number of columns"),
        ({"least_rows": 0}, "least_rows must be at least 1"),
        ({"weighted": True}, "after the weights"),
        ({"target": np.zeros((2, 1), np.float32)}, "one per row of the table"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    core = _extension.core()
    given = {
        "table": np.zeros((2, 4), np.float32),
        "numbers": np.zeros((1, 4), np.int32),
        "weighted": False,
        "target": np.zeros((4, 1), np.float32),
        "rows": np.arange(4, dtype=np.int32),
        "least_rows": 1,
        "tried": 1,
        "seeds": SEEDS,
    }
    assert core.ExtraTrees(**given).leaves == len(SEEDS)
    with pytest.raises(ValueError, match=message):
        core.ExtraTrees(**{**given, **change})
