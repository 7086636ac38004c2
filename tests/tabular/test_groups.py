"""Rows that belong together, by `groups=` or as copies of one another, are never on both sides of a split."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fewfire as ff
from fewfire._dense.network import held_out_folds
from fewfire._random import Stream
from fewfire.tabular import AdamW, _ensemble, _frames
from fewfire.tabular._frames import check_groups, row_groups

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + RNG.normal(size=60) > 0).astype(int)
QUICK = {"hidden": (8,), "scaling": "standard", "gains": "none", "random_state": 0, "optimiser": AdamW(epochs=3)}


@pytest.fixture
def splits(monkeypatch):
    """The folds of every split of a fit."""
    found = []

    def recorded(*arguments):
        found.append(held_out_folds(*arguments))
        return found[-1]

    for module in (_ensemble, _frames):
        monkeypatch.setattr(module, "held_out_folds", recorded)
    return found


def on_both_sides(folds, together):
    together = np.asarray(together)
    return sum(len(set(together[fold]) & set(np.delete(together, fold))) for fold in folds)


@given(
    rows=st.integers(8, 60),
    groups=st.integers(4, 12),
    folds=st.integers(2, 4),
    continuous=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_groups_are_dealt_out_whole(rows, groups, folds, continuous, seed):
    rng = np.random.default_rng(seed)
    of_row = rng.permutation(np.append(np.arange(groups), rng.integers(0, groups, max(0, rows - groups))))
    strata = rng.normal(size=len(of_row)) if continuous else rng.integers(0, 3, len(of_row))
    held = held_out_folds(strata, folds, folds, Stream(seed, "t"), of_row)
    assert np.array_equal(np.sort(np.concatenate(held)), np.arange(len(of_row)))
    assert on_both_sides(held, of_row) == 0
    assert all(len(fold) for fold in held)


@pytest.mark.parametrize("continuous", [False, True])
def test_groups_of_one_size_are_balanced_as_rows_are(continuous):
    strata = RNG.normal(size=80) if continuous else np.arange(80) % 4
    held = held_out_folds(strata.repeat(3), 4, 4, Stream(0, "t"), np.arange(80).repeat(3))
    assert [len(fold) for fold in held] == [60] * 4
    means = [strata.repeat(3)[fold].mean() for fold in held]
    assert np.ptp(means) <= (0.3 if continuous else 0.0)


@pytest.mark.parametrize("labels", [np.arange(60) // 4, [f"p{row % 15}" for row in range(60)]])
def test_rows_of_a_group_are_held_out_together(splits, labels):
    table = pd.DataFrame(X).assign(town=[f"t{row % 12}" for row in range(60)])
    table.columns = table.columns.astype(str)
    ff.TabularClassifier(**QUICK).fit(table, Y, groups=labels)
    assert len(splits) == 2  # of networks and trees, and of the means of categories
    assert all(on_both_sides(folds, labels) == 0 for folds in splits)


def test_the_same_groups_by_other_labels_give_the_same_fit():
    labels = np.arange(60) // 4
    named = [f"p{label}" for label in labels]
    ours, theirs = (ff.TabularClassifier(**QUICK).fit(X, Y, groups=given) for given in (labels, pd.Series(named)))
    assert np.array_equal(ours.predict_proba(X), theirs.predict_proba(X))


def test_groups_of_single_rows_change_nothing():
    alone, without = ff.TabularClassifier(**QUICK).fit(X, Y, groups=np.arange(60)), ff.TabularClassifier(**QUICK)
    assert np.array_equal(alone.predict_proba(X), without.fit(X, Y).predict_proba(X))


def test_a_row_without_a_label_is_a_group_of_its_own():
    labels = np.where(np.arange(60) < 20, None, np.arange(60) // 4)
    numbers = check_groups(labels, 60)
    assert len(set(numbers)) == 30 and len(set(numbers[:20])) == 20
    assert len(set(check_groups(np.where(np.arange(60) < 20, np.nan, 1.0), 60))) == 21


def test_copies_of_a_row_are_held_out_together(splits):
    gaps = np.where(X > 1.5, np.nan, X)
    ff.TabularRegressor(**QUICK).fit(np.tile(gaps, (5, 1)), np.tile(X[:, 0], 5))
    assert splits and on_both_sides(splits[0], np.tile(np.arange(60), 5)) == 0


def test_copies_join_groups(splits):
    table, labels = X.copy(), np.arange(60) // 4
    table[0] = table[59]  # rows of the first group and the last
    ff.TabularClassifier(**QUICK).fit(table, Y, groups=labels)
    assert on_both_sides(splits[0], labels % 14) == 0


def test_what_makes_rows_copies():
    found = row_groups(np.append(X, [[0.0, np.nan, 1.0], [-0.0, -np.nan, 1.0], X[3]], axis=0), None)
    assert found[60] == found[61] and found[62] == found[3] and len(set(found)) == 61
    assert row_groups(X, None) is None
    assert row_groups(np.arange(600).reshape(200, 3) % 2 * 1.0, None) is None  # few cells, many rows of each


def test_repeated_rows_are_no_new_evidence():
    """With copies on both sides of the folds a fit memorises: the log loss on fresh rows rose by a quarter."""
    from sklearn.metrics import log_loss

    rng = np.random.default_rng(1)
    points = rng.normal(size=(1100, 6))
    labels = (points[:, 0] + 1.5 * rng.normal(size=1100) > 0).astype(int)
    settings = {"hidden": (32,), "members": 4, "scaling": "rank", "random_state": 0}
    once, repeated = (
        ff.TabularClassifier(**settings).fit(np.tile(points[:100], (times, 1)), np.tile(labels[:100], times))
        for times in (1, 5)
    )
    losses = [log_loss(labels[100:], model.predict_proba(points[100:])) for model in (once, repeated)]
    assert losses[1] < losses[0] + 0.05


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        (np.zeros(59), "groups must have one label for each of the 60 rows; got shape (59,)."),
        (
            [1] * 60,
            "groups must leave 10 rows or more outside of each (those with copies of a row in common are one); "
            "got a group of 60 of the 60 rows. Remedy: pass validation_data in place of groups.",
        ),
    ],
)
def test_groups_that_cannot_be_held_out(groups, text):
    with pytest.raises(ff.InvalidArgument) as caught:
        ff.TabularClassifier(**QUICK).fit(X, Y, groups=groups)
    assert str(caught.value).startswith(text[:-1])


def test_a_small_design_may_have_groups():
    """Its few different rows are cells, not copies that tie all groups together."""
    cells = np.random.default_rng(0).choice([-1.0, 1.0], (200, 3))
    groups = np.arange(200) // 5
    found = row_groups(cells, groups)
    assert len(np.unique(found)) == 40 and all(len(set(found[groups == group])) == 1 for group in range(40))
    assert ff.TabularClassifier(**QUICK).fit(cells, cells[:, 0] > 0, groups=groups).score(cells, cells[:, 0] > 0) == 1.0


def test_rows_without_a_label_are_alone_in_lists_of_texts():
    assert check_groups(["a", "b", np.nan, None, np.nan, "a"], 6).tolist() == [0, 1, 2, 3, 4, 0]
    with pytest.raises(ff.InvalidArgument, match="groups must not hide values"):
        check_groups(np.ma.masked_array([1, 2, 3], [False, True, False]), 3)
