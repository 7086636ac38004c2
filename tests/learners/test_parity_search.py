"""The parity search: C++ on every instruction set, its reference implementation and plain enumeration agree, ties included."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire import _extension
from fewfire._random import Stream
from fewfire.learners.baselines._exhaustive_parity import Hit, search, search_reference


def by_definition(X, y, size):
    hits = [
        Hit(members, int((y.astype(int) * X[:, list(members)].prod(axis=1, dtype=int)).sum()))
        for members in combinations(range(X.shape[1]), size)
    ]
    ranked = sorted(hits, key=lambda hit: (-abs(hit.correlation), hit.support))
    return ranked[0], ranked[1] if len(ranked) > 1 else None


@given(
    m=st.integers(1, 140), extra=st.integers(0, 9), size=st.integers(1, 5), threads=st.integers(1, 3),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_all_ways_agree(m, extra, size, threads, seed):
    stream = Stream(seed, "search")
    X, y = stream.sign_rows(m, size + extra), stream.child("labels").signs(m)
    expected = by_definition(X, y, size)
    core = _extension.load()
    for isa in core.available_isas() if core else []:
        core.set_isa(isa)
        found = search(X, y, size, threads)
        assert (found.best, found.runner_up) == expected
        assert found.sets == comb(size + extra, size)
    twin = search_reference(X, y, size)
    assert (twin.best, twin.runner_up, twin.sets) == (*expected, comb(size + extra, size))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_ties_go_to_the_lexicographically_first_set(size):
    X, y = np.ones((7, 12), dtype=np.int8), np.ones(7, dtype=np.int8)
    found = search(X, y, size, 2)
    assert found.best == Hit(tuple(range(size)), 7)
    assert found.runner_up == Hit((*range(size - 1), size), 7)


def test_the_empty_set_is_the_constant():
    y = np.array([1, 1, -1, 1], dtype=np.int8)
    assert search(np.ones((4, 3), dtype=np.int8), y, 0, 1).best == Hit((), 2)


def test_each_set_costs_about_one_word_operation_a_word(core):
    stream = Stream(0, "search")
    X, y = stream.sign_rows(1000, 100), stream.child("labels").signs(1000)
    found = search(X, y, 3, 2)
    needed = comb(100, 3) * 16
    assert found.sets == comb(100, 3)
    assert needed <= found.words <= 1.3 * needed


def test_without_the_extension():
    stream = Stream(4, "search")
    X, y = stream.sign_rows(90, 9), stream.child("labels").signs(90)
    expected = by_definition(X, y, 3)
    with _extension.without_extension():
        found = search(X, y, 3, 2)
    assert (found.best, found.runner_up) == expected


def test_wrong_shapes_are_refused(core):
    columns, labels = np.zeros((4, 2), dtype=np.uint64), np.zeros(2, dtype=np.uint64)
    members, correlations = np.empty((2, 3), dtype=np.int64), np.empty(2, dtype=np.int64)
    core.parity_search(columns, labels, 100, 3, 1, members, correlations)
    for examples, size in ((129, 3), (100, 5), (100, 0)):
        with pytest.raises(ValueError, match="wrong shape"):
            core.parity_search(columns, labels, examples, size, 1, members, correlations)


def test_ctrl_c_ends_the_search(core):
    import _thread
    import threading

    stream = Stream(0, "search")
    X, y = stream.sign_rows(20_000, 300), stream.child("labels").signs(20_000)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            search(X, y, 5, 2)  # 2·10¹⁰ sets: hours
    finally:
        timer.cancel()
