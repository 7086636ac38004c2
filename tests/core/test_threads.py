"""Threads that cannot be started: the work is done by those there are, and comes out the same."""

import threading

import numpy as np
import pytest

from fewfire._threads import Helpers, start_threads
from fewfire.tabular import AdamW, TabularClassifier


@pytest.fixture
def at_most(monkeypatch):
    """Lets so many threads be started and refuses the others, as the system does at its limit."""
    start, begun = threading.Thread.start, []

    def limit(count):
        def try_to(thread):
            if len(begun) >= count:
                raise RuntimeError("can't start new thread")
            begun.append(thread)
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", try_to)
        return begun

    return limit


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_work_is_done_by_the_threads_there_are(at_most, count):
    begun = at_most(count)
    with Helpers(3) as helpers:
        assert helpers.map(lambda number: number**2, range(20)) == [number**2 for number in range(20)]
    assert len(begun) == min(count, 3)


@pytest.mark.parametrize("count", [0, 3])
def test_errors_reach_who_waits(at_most, count):
    at_most(count)

    def refuse(number):
        raise ValueError(number)

    with pytest.raises(ValueError, match="4"), Helpers(2) as helpers:
        helpers.map(refuse, [4])


def test_threads_are_started_as_far_as_they_can_be(at_most):
    at_most(2)
    called = []
    for thread in start_threads(lambda: called.append(1), 7):
        thread.join()
    assert called == [1, 1]


@pytest.mark.parametrize("count", [0, 1])
def test_a_tabular_fit_goes_on_and_is_the_same(at_most, count):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(120, 3))
    y = X[:, 0] * X[:, 1] > 0
    settings = {"n_jobs": 3, "optimiser": AdamW(epochs=3), "random_state": 0}
    expected = TabularClassifier(**settings).fit(X, y).predict_proba(X)
    at_most(count)
    found = TabularClassifier(**settings).fit(X, y)
    np.testing.assert_array_equal(found.predict_proba(X), expected)
