"""What may come between: Ctrl-C, a fork, no memory. The index is as it was, or raises an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from fewfire.halfspace import Index, _index

MANY = np.random.default_rng(1).normal(size=(100_000, 2))  # some seconds to peel
FEW = np.random.default_rng(0).normal(size=(300, 2))
POINTS = np.random.default_rng(0).normal(size=(60_000, 48)).astype(np.float32)
LONG = np.resize(POINTS[:1000], (400_000, 48))  # queries for minutes, so that they cannot have ended


@pytest.fixture
def press_ctrl_c():
    """Presses Ctrl-C a moment after it is called."""
    timers = []

    def press():
        timers.append(threading.Timer(0.15, lambda: os.kill(os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield press
    for timer in timers:
        timer.join()


def test_an_insertion_that_peels_layers_can_be_interrupted(core, press_ctrl_c):
    index = Index(FEW, method="layers")
    expected = index.query([1.0, 2.0], 0.5)
    press_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        index.insert(MANY)
    assert len(index) == 300
    np.testing.assert_array_equal(index.query([1.0, 2.0], 0.5), expected)
    index.insert(FEW[:2])
    assert len(index) == 302


def test_an_update_that_peels_layers_can_be_interrupted(core, press_ctrl_c):
    index = Index(MANY, method="layers")
    expected = index.query([1.0, 2.0], 5.0)
    press_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        index.update(index.ids, -2 * MANY)
    np.testing.assert_array_equal(index.query([1.0, 2.0], 5.0), expected)
    assert len(index) == len(MANY)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("method", "threshold"), [("scan", 1e6), ("screen", 1e6), ("tree", 0.0)])
def test_a_batch_of_queries_can_be_interrupted(core, press_ctrl_c, method, threads, threshold):
    """The counters count what was answered: nothing."""
    index = Index(POINTS, method=method, threads=threads)
    press_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        index.query_batch(LONG, threshold)
    assert index.counters.queries == 0
    assert index.query(POINTS[0], 1e6).tolist() == []  # and it answers on


def test_a_batch_with_scores_can_be_interrupted(core, press_ctrl_c):
    index = Index(POINTS, method="scan", threads=2)
    press_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        index.query_batch(LONG, 20.0, scores=True)
    assert index.counters.queries == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_an_insertion_that_builds_a_tree_can_be_interrupted(core, press_ctrl_c, threads):
    index = Index(POINTS[:3000], method="tree", threads=threads)
    expected = index.query(POINTS[0], 30.0)
    many = np.resize(POINTS, (1_000_000, 48))
    press_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        index.insert(many)
    assert len(index) == 3000
    np.testing.assert_array_equal(index.query(POINTS[0], 30.0), expected)


def test_a_batch_that_a_handler_lets_go_on_is_answered_whole(core, press_ctrl_c):
    index, seen, asked = Index(POINTS, method="scan", threads=2), [], 0
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(len(index)))
    try:
        for count in (1000, 5000, 25_000, 125_000):  # until the batch takes longer than until Ctrl-C
            seen.clear()
            press_ctrl_c()
            found, asked = index.query_batch(LONG[:count], 30.0), asked + count
            if seen:
                break
            while not seen:
                time.sleep(0.01)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [len(POINTS)] and index.counters.queries == asked and len(found.indptr) == count + 1
    for query in (0, 7, 999, count - 1):
        mine = found.indices[found.indptr[query] : found.indptr[query + 1]]
        np.testing.assert_array_equal(mine, index.query(LONG[query], 30.0))


def test_a_handler_that_raises_nothing_may_ask_the_index_and_the_change_is_made(core, press_ctrl_c):
    index, seen = Index(FEW, method="layers"), []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(len(index)))
    try:
        press_ctrl_c()
        index.insert(MANY)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [300]
    assert len(index) == 300 + len(MANY)


class Failing:
    """A structure of `auto` that has no memory for changes."""

    counters = (3, 0, 0, 0, 0, 0)

    def __getattr__(self, name):
        def fail(*_):
            raise MemoryError

        return fail


def test_auto_goes_on_without_a_structure_that_could_not_be_changed(core):
    points = np.random.default_rng(2).normal(size=(40_000, 3)).astype(np.float32)
    index = Index(points, method="auto")
    query, batch = points[0], points[:20]
    index.query(query, 3.0)
    index._kept = {**index._kept, "failing": Failing()}
    (name, _), *_ = index._kept.items()
    queries = index.counters.queries
    ids = index.insert(points[:5])
    assert list(index._kept) == [name]
    assert index.counters.queries == queries  # what it answered still counts
    expected = Index(np.concatenate([points, points[:5]]), method="scan")
    assert ids.tolist() == [40_000, 40_001, 40_002, 40_003, 40_004]
    np.testing.assert_array_equal(index.query(query, 3.0), expected.query(query, 3.0))
    np.testing.assert_array_equal(index.query_batch(batch, 3.0).indices, expected.query_batch(batch, 3.0).indices)


class Handled(Exception):
    """What the handler of a signal may raise."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, Handled])
@pytest.mark.parametrize("method", ["scan", "tree"])
@pytest.mark.parametrize("what", ["insert", "update", "remove"])
def test_an_error_between_the_change_and_its_return_leaves_one_structure(core, monkeypatch, method, what, error):
    """A signal that comes while C++ works is handled when the change is made: others do not hold the same points."""
    index = Index(POINTS[:3000], method="auto")
    ids, other = index.ids, {"scan": "tree", "tree": "scan"}[method]
    both = {name: index._build(name, ids, POINTS[:3000], np.zeros(3000, dtype=np.float32)) for name in (method, other)}
    both[other].query(POINTS[:5], np.zeros(5, dtype=np.float32), 1)

    class Interrupted:
        def __getattr__(self, name):
            return getattr(both[method], name)

    def change(*arguments):
        getattr(both[method], what)(*arguments)
        raise error

    interrupted = Interrupted()
    setattr(interrupted, what, change)
    monkeypatch.setattr(index, "_kept", {method: interrupted, other: both[other]})
    queries = index.counters.queries
    arguments = {"insert": (POINTS[:2500],), "update": (ids[:2000], -POINTS[:2000]), "remove": (ids[:2000],)}[what]
    with pytest.raises(error):
        getattr(index, what)(*arguments)
    assert list(index._kept) == [method] and index.counters.queries == queries
    delattr(interrupted, what)
    expected = Index(POINTS[:3000], method="scan")
    getattr(expected, what)(*arguments)
    assert index.insert(POINTS[:1]).tolist() == expected.insert(POINTS[:1]).tolist()  # no id is used again
    for batch in (POINTS[:1], POINTS[:64]):
        found, right = index.query_batch(batch, 3.0), expected.query_batch(batch, 3.0)
        np.testing.assert_array_equal(found.indptr, right.indptr)
        np.testing.assert_array_equal(found.indices, right.indices)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_change_that_fails_gives_back_what_was_kept_and_takes_no_id(monkeypatch, error):
    index = Index(FEW, method="auto")
    kept = index._kept

    class Refusing:
        size = 300

        def insert(self, *_):
            raise error

    monkeypatch.setattr(index, "_kept", {"scan": Refusing(), "other": Failing()})
    with pytest.raises(error):
        index.insert(FEW)
    assert list(index._kept) == (["scan", "other"] if error is MemoryError else ["scan"])
    monkeypatch.setattr(index, "_kept", kept)
    first = index.insert(FEW[:1])[0]
    assert first == (300 if error is MemoryError else 600)  # an interrupted insertion may have been made
    assert index in _index._indexes


FORK = """
import os, signal, sys, threading, time, warnings
import numpy as np
from fewfire.halfspace import Index

warnings.simplefilter("ignore")  # of forking with threads: that is what is tried
method, points = sys.argv[1], np.random.default_rng(0).normal(size=(100_000, 2 if sys.argv[1] == "layers" else 16))
few = points[:300]
index = Index(few if sys.argv[2] == "change" else points, method="layers" if sys.argv[2] == "change" else method)
done = threading.Event()

def ask():
    while not done.is_set():
        index.query_batch(points[:400], 1.0)
        index.counters, len(index)

def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that hangs
        try:
            work()
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def use():
    ids = index.insert(few)
    index.update(ids, few + 1)
    assert len(index.query(points[0], 1.0)) > 0
    index.remove(ids)
    assert len(index) == len(points) and index.counters.queries >= 0

if sys.argv[2] == "ask":
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    print([in_child(use) for _ in range(5)])
    done.set()
    for thread in threads:
        thread.join()
else:
    thread = threading.Thread(target=lambda: index.insert(points))
    thread.start()
    time.sleep(0.15)
    print([in_child(lambda: len(index))])
    thread.join()
    assert len(index) == 100_300
    print([in_child(lambda: len(index))])
"""


def forked(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", FORK, *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.splitlines()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.skipif(
    "FEWFIRE_SANITIZER" in os.environ, reason="a sanitizer's own allocator may be locked by another thread at a fork"
)
@pytest.mark.parametrize("method", ["scan", "screen", "tree", "auto"])
def test_a_child_may_use_an_index_that_other_threads_were_asking(core, method):
    assert forked(method, "ask") == ["[0, 0, 0, 0, 0]"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_gets_an_error_when_the_index_was_being_changed(core):
    message, first, second = forked("layers", "change")
    assert message.startswith("RuntimeError this index was being changed by another thread when the process was forked")
    assert message.endswith("Remedy: make it in the child, or fork between changes")
    assert first == "[1]"
    assert second == "[0]"  # the parent's is whole, and so are later copies of it
