"""Rows held out: every row once per round of folds, classes evenly; and when training stops by them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fewfire._dense.network import held_out_folds
from fewfire._dense.optimisers import BestEpoch
from fewfire._random import Stream


@given(rows=st.integers(4, 60), networks=st.integers(1, 9), folds=st.integers(2, 4), seed=st.integers(0, 2**32))
def test_networks_in_a_row_hold_out_every_row_once(rows, networks, folds, seed):
    strata = np.arange(rows) % 3
    held = held_out_folds(strata, networks, folds, Stream(seed, "t"))
    assert len(held) == networks
    for start in range(0, networks - folds + 1, folds):
        assert np.array_equal(np.sort(np.concatenate(held[start : start + folds])), np.arange(rows))
    for part in held:
        assert (np.diff(part) > 0).all()
        counts = np.bincount(strata[part], minlength=3)
        assert np.abs(counts - np.bincount(strata, minlength=3) / folds).max() < 2


def test_training_is_over_when_no_epoch_was_better_for_long_enough():
    best = BestEpoch(patience=2)
    steps = [(best.better(score), best.epoch, best.over) for score in (3.0, 2.0, 2.0, 1.0, 5.0, 1.5)]
    assert steps == [
        (True, 1, False),
        (True, 2, False),
        (False, 2, False),
        (True, 4, False),
        (False, 4, False),
        (False, 4, True),
    ]


def test_without_patience_training_goes_on_and_ties_go_by_the_second_number():
    best = BestEpoch()
    assert [best.better(score) for score in ((1, 5), (1, 4), (1, 4), (0, 9))] == [True, True, False, True]
    assert best.epoch == 4 and not any(best.better((7, 0)) or best.over for _ in range(50))
