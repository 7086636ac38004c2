"""Splits: disjoint, of the right sizes, nested in the fraction, the same for everyone, without strata."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire import InvalidArgument
from fewfire.problems import tabular


def made_up(rows, name="pol"):
    X = np.arange(rows, dtype=np.float32)[:, None]
    y = (np.arange(rows) >= rows // 2).astype(np.int64)  # sorted by class, as some files are
    return tabular.Dataset(name, X, y, "classification", ("row",), np.zeros(1, dtype=bool), "made up")


@given(rows=st.integers(2, 3000), trial=st.integers(0, 50), fraction=st.floats(1e-4, 1), cap=st.integers(1, 3000))
def test_sizes_and_disjointness(rows, trial, fraction, cap):
    parts = tabular.split(made_up(rows), trial, fraction, cap)
    held_out = max(1, round(rows / 10))
    assert len(parts.test) == held_out
    assert len(parts.train) == min(cap, max(1, round(fraction * (rows - held_out))))
    both = np.concatenate([parts.train, parts.test])
    assert len(np.unique(both)) == len(both) and both.min() >= 0 and both.max() < rows


def test_rows_follow_their_numbers():
    parts = tabular.split(made_up(500), 3, 0.2)
    assert (parts.X_train[:, 0] == parts.train).all() and (parts.X_test[:, 0] == parts.test).all()
    assert (parts.y_train == (parts.train >= 250)).all() and (parts.y_test == (parts.test >= 250)).all()


def test_a_trial_is_the_same_for_all_and_smaller_fractions_are_nested():
    full, part = (tabular.split(made_up(1000), 4, fraction) for fraction in (1, 0.1))
    assert (full.test == part.test).all() and (full.train[:90] == part.train).all()
    assert len(full.train) + len(full.test) == 1000
    # The very rows, so that a change of the draw shows: results of earlier runs would no longer compare.
    assert part.test[:5].tolist() == [416, 34, 528, 568, 360] and part.train[:5].tolist() == [737, 177, 160, 885, 115]
    assert tabular.split(made_up(1000), 5, 0.1).test.tolist() != part.test.tolist()
    assert tabular.split(made_up(1000, "credit"), 4, 0.1).test.tolist() != part.test.tolist()


def test_classes_are_drawn_without_strata():
    data = made_up(2000)
    shares = np.array([tabular.split(data, trial, 0.05).y_train.mean() for trial in range(400)])
    # 90 of 2000 rows: standard deviation ½·√(1/90)·√(1 − 90/2000) = 0.0515; strata would give 0.
    assert abs(shares.mean() - 0.5) < 4 * 0.0515 / 20
    assert 0.0515 * 0.85 < shares.std() < 0.0515 * 1.15


def test_large_sets_are_capped():
    assert len(tabular.split(made_up(30_000), 0).train) == 20_000
    assert len(tabular.split(made_up(30_000), 0, cap=None).train) == 27_000
    assert len(tabular.split(made_up(30_000), 0, 0.5).train) == 13_500


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((-1, 0.1), "trial must be an integer of at least 0; got -1"),
        ((0, 0.0), r"fraction must be a finite number in \(0, 1\]; got 0.0"),
        ((0, 1.5), r"fraction must be a finite number in \(0, 1\]; got 1.5"),
        ((0, 0.1, 0), "cap must be an integer of at least 1; got 0"),
    ],
)
def test_bad_arguments(arguments, text):
    with pytest.raises(InvalidArgument, match=text):
        tabular.split(made_up(20), *arguments)


def test_one_row_cannot_be_split():
    with pytest.raises(InvalidArgument, match="rows of the data set must be an integer of at least 2; got 1"):
        tabular.split(made_up(1), 0)
