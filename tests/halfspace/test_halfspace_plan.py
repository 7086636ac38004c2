"""`method="auto"`: measured on the user's queries, explained, measured again when the index has changed a lot."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire.halfspace import Index, _plan
from fewfire.halfspace._plan import IndexPlan

DRAW = np.random.default_rng(5)


@pytest.mark.usefixtures("core")
def test_few_points_are_scanned_without_measuring():
    index = Index(DRAW.normal(size=(100, 4)))
    assert str(index.plan) == "scan: nothing measured yet; the first queries decide"
    index.query([1, 0, 0, 0], 1.0)
    assert index.plan == IndexPlan("scan", "few enough points for a scan of microseconds", size=100)


@pytest.mark.usefixtures("core")
def test_the_fastest_method_is_kept_and_the_reason_given():
    index = Index(DRAW.normal(size=(60_000, 2)))
    queries = DRAW.normal(size=(64, 2))
    index.query_batch(queries, 4 * np.linalg.norm(queries, axis=1))
    plan = index.plan
    assert set(plan.seconds) == {"scan", "screen", "tree"}
    assert plan.method == min(plan.seconds, key=plan.seconds.get)
    assert (plan.size, plan.queries) == (60_000, 64)
    assert "fastest of scan, screen, tree on 64 of your queries" in plan.reason
    assert "µs a query)" in str(plan)
    assert plan.method in repr(index)


@pytest.mark.usefixtures("core")
def test_no_full_tree_is_built_where_a_small_one_prunes_nothing():
    index = Index(DRAW.normal(size=(20_000, 40)))
    index.query_batch(DRAW.normal(size=(16, 40)), 0.0)
    assert set(index.plan.seconds) == {"scan", "screen"}
    assert "so none was built" in index.plan.reason


@pytest.mark.usefixtures("core")
def test_single_queries_and_batches_are_planned_apart(monkeypatch):
    times = {("tree", True): 1.0, ("screen", False): 1.0}
    named = {}

    def record(kept, rows, thresholds, threads, many):
        return times.get((named[id(kept)], many), 2.0)

    def build(self, method, ids, rows, offsets, original=Index._build):
        kept = original(self, method, ids, rows, offsets)
        named[id(kept)] = method
        return kept

    monkeypatch.setattr(_plan, "_seconds", record)
    monkeypatch.setattr(Index, "_build", build)
    points = DRAW.normal(size=(20_000, 2))
    index = Index(points)
    index.query([1, 1], 4.0)
    assert index.method == "screen"
    queries = DRAW.normal(size=(20, 2))
    index.query_batch(queries, 8.0)
    assert index.method == "tree"
    assert sorted(index._kept) == ["screen", "tree"]
    index.remove(np.arange(100))
    index.update([200], [[9.0, 9.0]])
    assert 200 in index.query([1, 1], 17.0)
    assert 200 in index.query_batch(np.ones((9, 2)), 17.0).row(8)
    assert not np.isin(np.arange(100), index.query([0, 0], -1.0)).any()


def test_a_fourfold_change_of_size_is_measured_again():
    index = Index(DRAW.normal(size=(10_000, 4)))
    index.query([1, 0, 0, 0], 3.0)
    assert index.plan.size == 10_000
    index.insert(DRAW.normal(size=(20_000, 4)))
    index.query([1, 0, 0, 0], 3.0)
    assert index.plan.size == 10_000
    index.insert(DRAW.normal(size=(20_000, 4)))
    index.query([1, 0, 0, 0], 3.0)
    assert index.plan.size == 50_000


def test_a_method_that_was_asked_for_is_not_changed():
    index = Index(DRAW.normal(size=(20_000, 2)), method="scan")
    index.query_batch(DRAW.normal(size=(64, 2)), 5.0)
    assert str(index.plan) == "scan: as asked"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("core")
def test_counters_survive_a_change_of_method(threads):
    index = Index(DRAW.normal(size=(20_000, 2)), threads=threads)
    index.query([1, 0], 3.5)
    before = index.counters
    index.query([1, 0], 3.5)
    assert before.queries > 1  # measuring counts
    assert index.counters.queries == before.queries + 1


def test_counters_never_go_back_when_planned_again():
    index = Index(DRAW.normal(size=(20_000, 2)))
    queries = DRAW.normal(size=(16, 2))
    before = 0
    for _ in range(3):
        index.query_batch(queries, 3.0)
        assert index.counters.queries >= before + 16
        before = index.counters.queries
        index.insert(DRAW.normal(size=(4 * len(index), 2)))
