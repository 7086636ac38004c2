"""What every half-space method promises: the ids of brute force, stable ids, and refusals that change nothing."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire._types import AnyArray, IdArray
from fewfire.halfspace import Index, load, scores

POINTS = np.random.default_rng(7).normal(size=(3000, 5)).astype(np.float32)
OFFSETS = np.random.default_rng(8).normal(size=3000).astype(np.float32)
QUERIES = np.random.default_rng(9).normal(size=(40, 5)).astype(np.float32)


class MakeIndex(Protocol):
    """Makes an index of the method under test."""

    def __call__(self, points: Any, offsets: Any = None) -> Index:
        """The index."""
        ...


def brute(points: AnyArray, offsets: Any, query: AnyArray, threshold: float) -> IdArray:
    """The ids that a scan finds."""
    return np.flatnonzero(scores(points, offsets, query) > np.float32(threshold))


class HalfspaceConformance:
    """Subclass it in a test module, with a fixture `make` that gives a function as `MakeIndex` is."""

    def test_reports_are_those_of_brute_force(self, make: MakeIndex) -> None:
        index = make(POINTS, OFFSETS)
        thresholds = np.random.default_rng(10).uniform(0, 4, size=40)
        report = index.query_batch(QUERIES, thresholds)
        assert report.rows == 40
        for i, (query, threshold) in enumerate(zip(QUERIES, thresholds, strict=True)):
            expected = brute(POINTS, OFFSETS, query, threshold)
            np.testing.assert_array_equal(report.row(i), expected)
            np.testing.assert_array_equal(index.query(query, threshold), expected)
        assert report.indices.dtype == np.int64

    def test_points_on_the_boundary_are_not_reported(self, make: MakeIndex) -> None:
        corners = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=np.float32)
        index = make(np.repeat(corners, 50, axis=0))
        assert index.query([1, 1], 1.0).tolist() == list(range(100, 150))
        assert index.query([1, 1], np.nextafter(np.float32(1), np.float32(0))).tolist() == list(range(150))
        assert index.query([0, 0], 0.0).tolist() == []
        assert index.query([0, 0], -1e-45).tolist() == list(range(200))

    def test_an_offset_counts_as_it_is(self, make: MakeIndex) -> None:
        index = make(np.zeros((5, 3)), [-2, -1, 0, 1, 2])
        assert index.query([9, 9, 9], 0.0).tolist() == [3, 4]
        assert make(np.zeros((5, 3)), 1.5).query([1, 0, 0], 1.0).tolist() == [0, 1, 2, 3, 4]

    def test_scores_on_request_are_those_that_decided(self, make: MakeIndex) -> None:
        index = make(POINTS, OFFSETS)
        index.remove(np.arange(0, 3000, 11))
        index.update([1, 2999], POINTS[[5, 6]], OFFSETS[[5, 6]])
        index.insert(POINTS[:30], OFFSETS[:30])
        points = np.concatenate([POINTS, POINTS[:30]])
        offsets = np.concatenate([OFFSETS, OFFSETS[:30]])
        points[[1, 2999]], offsets[[1, 2999]] = POINTS[[5, 6]], OFFSETS[[5, 6]]
        before = index.counters
        report = index.query_batch(QUERIES, 1.5, scores=True)
        between = index.counters
        plain = index.query_batch(QUERIES, 1.5)
        start, middle, end = map(astuple, (before, between, index.counters))
        assert np.subtract(middle, start).tolist() == np.subtract(end, middle).tolist()  # scores are not counted
        np.testing.assert_array_equal(report.indptr, plain.indptr)
        np.testing.assert_array_equal(report.indices, plain.indices)
        assert report.scores.dtype == np.float32
        for i, query in enumerate(QUERIES):
            expected = scores(points[report.row(i)], offsets[report.row(i)], query)
            np.testing.assert_array_equal(report.row_scores(i), expected)
            ids, values = index.query(query, 1.5, scores=True)
            np.testing.assert_array_equal(ids, report.row(i))
            np.testing.assert_array_equal(values, expected)

    def test_scores_where_nothing_is_reported(self, make: MakeIndex) -> None:
        index = make(POINTS[:100], OFFSETS[:100])
        ids, values = index.query(QUERIES[0], 1e30, scores=True)
        assert (len(ids), len(values), values.dtype.name) == (0, 0, "float32")
        report = index.query_batch(np.empty((0, 5)), scores=True)
        assert (report.rows, report.scores.shape) == (0, (0,))

    def test_ids_are_stable(self, make: MakeIndex) -> None:
        index = make(POINTS[:100], OFFSETS[:100])
        index.remove([3, 50, 99])
        assert index.insert(POINTS[100:102], OFFSETS[100:102]).tolist() == [100, 101]
        assert index.insert(np.empty((0, 5))).tolist() == []
        assert len(index) == 99
        kept = np.setdiff1d(np.arange(102), [3, 50, 99])
        assert index.ids.tolist() == kept.tolist()
        for query in QUERIES[:5]:
            np.testing.assert_array_equal(
                index.query(query, 1.0), np.intersect1d(brute(POINTS[:102], OFFSETS[:102], query, 1.0), kept)
            )

    @pytest.mark.parametrize("shift", [1e-4, 0.1, 30.0])
    def test_updates_near_and_far(self, make: MakeIndex, shift: float) -> None:
        index = make(POINTS, OFFSETS)
        points, offsets, draw = POINTS.copy(), OFFSETS.copy(), np.random.default_rng(11)
        for round_ in range(4):
            moved = draw.permutation(3000)[: 10 if round_ % 2 else 1500]
            points[moved] += (shift * draw.normal(size=(len(moved), 5))).astype(np.float32)
            offsets[moved] += np.float32(shift)
            index.update(moved, points[moved], offsets[moved])
            report = index.query_batch(QUERIES, 3.0)
            for i, query in enumerate(QUERIES):
                np.testing.assert_array_equal(report.row(i), brute(points, offsets, query, 3.0))

    def test_an_index_can_be_empty_and_emptied(self, make: MakeIndex) -> None:
        index = make(np.empty((0, 4)))
        assert len(index) == 0
        assert index.query([1, 2, 3, 4], -1e30).tolist() == []
        assert index.query_batch(np.empty((0, 4))).rows == 0
        ids = index.insert(np.ones((300, 4)))
        index.remove(ids)
        assert len(index) == 0
        assert index.query_batch(np.ones((9, 4)), -1e30).counts.tolist() == [0] * 9
        assert index.insert(np.ones((1, 4))).tolist() == [300]

    def test_sums_that_overflow_are_reported_as_the_score_has_it(self, make: MakeIndex) -> None:
        points = np.array([[3e38, 3e38], [-3e38, 3e38], [3e38, -3e38], [1, 1]], dtype=np.float32)
        for query in ([10, 10], [1e30, -1e30], [1e-30, 1e-30], [2, 0.5]):
            expected = brute(points, 0.0, np.array(query, dtype=np.float32), 5.0)
            index = make(points)
            np.testing.assert_array_equal(index.query(query, 5.0), expected)
            values = index.query(query, 5.0, scores=True)[1]
            np.testing.assert_array_equal(values, scores(points, 0.0, query)[expected])

    @pytest.mark.parametrize(
        ("call", "text"),
        [
            (lambda i: i.query([1, 2], 0.0), "a must be a vector of 5 numbers; got shape (2,)"),
            (lambda i: i.query([1, 2, 3, 4, np.nan], 0.0), "a must hold finite numbers"),
            (lambda i: i.query([1, 2, 3, 4, 1e39], 0.0), "a must fit into float32"),
            (lambda i: i.query(QUERIES[0], np.inf), "threshold must hold finite numbers"),
            (lambda i: i.query_batch(QUERIES[:, :3]), "A must be a table of shape (count, 5); got shape (40, 3)"),
            (lambda i: i.query_batch(QUERIES, [1.0, 2.0]), "thresholds must be a number or a vector of 40"),
            (lambda i: i.insert([[1, 2, 3, 4, np.inf]]), "points must hold finite numbers"),
            (lambda i: i.insert([["a"] * 5]), "points must hold numbers"),
            (lambda i: i.insert(POINTS[:2], [0.0, np.nan]), "offsets must hold finite numbers"),
            (lambda i: i.remove([5, 100]), "ids must be in the index; got 100"),
            (lambda i: i.remove([5, -1]), "ids must be in the index; got -1"),
            (lambda i: i.remove([5, 5]), "ids must not repeat an id; got 5"),
            (lambda i: i.remove([1.5]), "ids must be a vector of integers"),
            (lambda i: i.update([5, 100], POINTS[:2]), "ids must be in the index; got 100"),
            (
                lambda i: i.update([5, 6], POINTS[:3]),
                "points must have one row for each of the 2 ids",
            ),
            (lambda i: i.update([5], [[np.nan] * 5]), "points must hold finite numbers"),
        ],
    )
    def test_refusals_change_nothing(self, make: MakeIndex, call: Callable[[Index], object], text: str) -> None:
        index = make(POINTS[:100], OFFSETS[:100])
        with pytest.raises(InvalidArgument) as refused:
            call(index)
        assert str(refused.value).startswith(text)
        assert index.ids.tolist() == list(range(100))
        np.testing.assert_array_equal(index.query(QUERIES[0], 0.5), brute(POINTS[:100], OFFSETS[:100], QUERIES[0], 0.5))

    def test_removed_ids_are_unknown(self, make: MakeIndex) -> None:
        index = make(POINTS[:10])
        index.remove(4)
        with pytest.raises(
            InvalidArgument, match=r"ids must be in the index; got 4.*ids of removed points are not used again"
        ):
            index.remove(4)

    def test_a_pickled_index_is_the_same(self, make: MakeIndex) -> None:
        index = make(POINTS[:500], OFFSETS[:500])
        index.remove(np.arange(0, 500, 7))
        again = pickle.loads(pickle.dumps(index))
        assert again.ids.tolist() == index.ids.tolist()
        assert again.requested == index.requested
        assert again.insert(POINTS[:1]).tolist() == [500]
        np.testing.assert_array_equal(again.query(QUERIES[0], 1.0), index.query(QUERIES[0], 1.0))

    def test_load_is_the_inverse_of_save(self, tmp_path: Path, make: MakeIndex) -> None:
        index = make(POINTS[:200], OFFSETS[:200])
        index.remove([0, 1, 199])
        index.save(tmp_path / "index")
        again = load(tmp_path / "index")
        assert again.ids.tolist() == index.ids.tolist()
        assert again.insert(POINTS[:1]).tolist() == [200]
        for query in QUERIES[:5]:
            np.testing.assert_array_equal(again.query(query, 5.0), index.query(query, 5.0))
