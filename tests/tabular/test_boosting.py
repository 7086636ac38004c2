"""Boosting and flat trees: C++ and its twin agree, bins and thresholds tell the same."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from fewfire import _extension
from fewfire.tabular._boosting import Booster, BoostingRule, beside, binned, chances, held_losses
from fewfire.tabular._flat_trees import FlatTrees, narrowed

LOSSES = {"logistic": 1, "squared": 2, "cross_entropy": 3}


def rows(loss, count=300, seed=0):
    """A narrowed table with missing values, targets and weights."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(count, 5))
    table[:, 3] = np.round(table[:, 3])
    table[rng.random(table.shape) < 0.05] = np.nan
    known = np.nan_to_num(table)
    score = 2 * known[:, 0] + np.sign(known[:, 1]) + 2 * np.isnan(table[:, 2])
    target = {
        "logistic": (score > 0)[:, None],
        "squared": np.column_stack([score, -(score**2)]),
        "cross_entropy": np.eye(3)[np.digitize(score, [-1, 1])],
    }[loss]
    return narrowed(table), target.astype(np.float32), (rng.random(count) + 0.5).astype(np.float32)


def boosted(loss, rounds=20, bins=63, leaves=8):
    table, target, weight = rows(loss)
    rule = BoostingRule(leaves=leaves, least_rows=5, learning_rate=0.1, bins=bins)
    part = np.arange(len(table)) % 4 > 0
    booster = Booster(
        binned(table, bins), target, weight, loss, np.flatnonzero(part), np.flatnonzero(~part), rule, seed=7
    )
    losses = np.concatenate([booster.advance(rounds // 2), booster.advance(rounds - rounds // 2)])
    trees, baseline = booster.trees(rounds)
    said = baseline + trees.sums(table, target.shape[1])
    return losses, trees, said, held_losses(loss, said[~part], target[~part]) @ weight[~part]


@pytest.mark.parametrize("leaves", [8, 40])  # by sieve and by walks
@pytest.mark.parametrize("loss", LOSSES)
def test_the_twin_grows_the_same_trees(loss, leaves):
    losses, trees, said, judged = boosted(loss, leaves=leaves)
    with _extension.without_extension():
        others, other_trees, said_there, _ = boosted(loss, leaves=leaves)
    np.testing.assert_allclose(losses, others, rtol=1e-6)
    np.testing.assert_allclose(said, said_there, atol=1e-5)
    assert np.array_equal(trees.forks, other_trees.forks)  # sums of whole numbers are exact
    assert judged == pytest.approx(losses[-1], rel=1e-6)  # bins and thresholds lead to the same leaves
    assert losses[-1] < 0.7 * losses[0]


def test_fewer_rounds_are_the_first_trees():
    table, target, weight = rows("squared")
    rule, everything = BoostingRule(leaves=4, least_rows=5, learning_rate=0.1), np.arange(len(table))
    booster = Booster(binned(table, 63), target, weight, "squared", everything, everything[:50], rule, seed=1)
    losses = booster.advance(9)
    for rounds in (1, 5, 9):
        trees, baseline = booster.trees(rounds)
        said = baseline + trees.sums(table[:50], 2)
        assert len(trees.roots) == 2 * rounds
        assert held_losses("squared", said, target[:50]) @ weight[:50] == pytest.approx(losses[rounds - 1], rel=1e-6)


def test_it_predicts_as_well_as_scikit_learns():
    (table, target, weight), (fresh, labels, _) = rows("logistic", 800), rows("logistic", 800, seed=1)
    rule = BoostingRule(leaves=8, least_rows=5, learning_rate=0.1)
    booster = Booster(
        binned(table, 63), target, np.ones_like(weight), "logistic", np.arange(800), np.arange(9), rule, seed=0
    )
    booster.advance(60)
    trees, baseline = booster.trees(60)
    mine = chances("logistic", baseline + trees.sums(fresh, 1))
    peer = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, min_samples_leaf=5, l2_regularization=1.0, max_features=0.5, max_bins=63
    )
    theirs = peer.fit(table, target[:, 0]).predict_proba(fresh)
    rights = [np.mean((said[:, 1] > 0.5) == labels[:, 0]) for said in (mine, theirs)]
    assert rights[0] > rights[1] - 0.02 > 0.9
    assert np.corrcoef(mine[:, 1], theirs[:, 1])[0, 1] > 0.98


def test_no_split_is_a_tree_of_one_leaf():
    table, target = np.ones((30, 2), np.float32), np.arange(30, dtype=np.float32)[:, None]
    rule = BoostingRule(leaves=4, least_rows=5, learning_rate=0.1)
    for hidden in (False, True):
        with _extension.without_extension() if hidden else np.errstate():
            booster = Booster(
                binned(table, 63),
                target,
                np.ones(30, np.float32),
                "squared",
                np.arange(30),
                np.arange(30),
                rule,
                seed=0,
            )
            booster.advance(3)
            trees, baseline = booster.trees(3)
            assert trees.forks.shape == (0, 4) and baseline[0] == pytest.approx(14.5)
            np.testing.assert_allclose(trees.sums(table, 1), 0.0, atol=1e-5)


def test_bins_hold_the_distinct_values_or_as_many_rows_each():
    rng = np.random.default_rng(0)
    table = narrowed(np.column_stack([rng.normal(size=1000), rng.integers(0, 4, 1000), np.full(1000, np.nan)]))
    table[:10, 0] = np.nan
    bins, counts, edges = binned(table, 20)
    assert counts.tolist() == [21, 5, 2] and (bins[0, :10] == 20).all() and (bins[2] == 1).all()
    held = np.bincount(bins[0], minlength=21)
    assert held[:20].min() > 45 and held[:20].max() < 54
    assert np.array_equal(bins[1], table[:, 1].astype(int))
    pieces = beside([binned(columns.T, 20) for columns in (table.T[:2], table.T[2:])])
    assert np.array_equal(pieces.bins, bins) and np.array_equal(pieces.counts, counts) and len(pieces.edges) == 3
    for place in (0, 1):
        known = ~np.isnan(table[:, place])
        assert np.array_equal(bins[place, known], np.searchsorted(edges[place], table[known, place]))


def test_rows_walk_alone_as_among_others():
    table, target, _ = rows("squared")
    rule, everything = BoostingRule(leaves=40, least_rows=5, learning_rate=0.1), np.arange(len(table))
    booster = Booster(
        binned(table, 63), target, np.ones(len(table), np.float32), "squared", everything, everything, rule, seed=1
    )
    booster.advance(4)
    flat, _ = booster.trees(4)
    said = flat.sums(table, 2)
    with _extension.without_extension():
        np.testing.assert_allclose(flat.sums(table, 2), said, rtol=1e-12)
    assert np.array_equal(said[:7], flat.sums(table[:7], 2))  # whatever rows stand around


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"forks": np.zeros((1, 3), np.int32)}, "forks must be"),
        ({"forks": np.array([[8, 0, -1, -1]], np.int32)}, "columns of x"),
        ({"forks": np.array([[0, 0, 0, -1]], np.int32)}, "after their fork"),
        ({"forks": np.array([[0, 0, -1, -9]], np.int32)}, "after their fork"),
        ({"roots": np.array([3], np.int32)}, "roots must be forks or leaves"),
        ({"first": np.array([1], np.int32)}, "room for the values"),
    ],
)
@pytest.mark.usefixtures("core")  # which checks what it is handed
def test_trees_that_lead_nowhere_are_refused(change, message):
    parts = {
        "forks": np.array([[0, 0, ~0, ~1]], np.int32),
        "roots": np.zeros(1, np.int32),
        "first": np.zeros(1, np.int32),
        "values": np.array([[1.0], [2.0]], np.float32),
    }
    table = np.array([[-1.0], [1.0], [np.nan]], np.float32)
    assert FlatTrees(**parts).sums(table, 1)[:, 0].tolist() == [1.0, 2.0, 2.0]
    with pytest.raises(ValueError, match=message):
        FlatTrees(**{**parts, **change}).sums(table, 1)
