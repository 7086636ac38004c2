"""Where bounds could fail: sums of codes beyond int32, products that underflow; and refusals of the public score."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire import InvalidArgument
from fewfire.halfspace import Index, scores


@pytest.mark.parametrize("method", ["scan", "screen", "tree"])
def test_sums_of_codes_beyond_int32(method):
    dimension = 140_000  # 127² · 140 000 > 2^31
    points = np.outer([1.0, -1.0, 1.0], np.ones(dimension))
    assert Index(points, method=method).query(np.ones(dimension)).tolist() == [0, 2]


def test_cones_where_products_underflow():
    """One long point at the rim of a cone of short ones, scores of some thousand times the least number."""
    draw, tiny = np.random.default_rng(0), 2.0**-70
    for _ in range(100):
        axis, side = np.linalg.qr(draw.normal(size=(4, 2)))[0].T
        angle = draw.uniform(0.2, 0.8)
        points = np.tile(axis, (16384, 1))
        points[0] = 400 * (np.cos(angle) * axis + np.sin(angle) * side)
        beyond = angle + draw.uniform(0.0, 0.4)
        query = (np.cos(beyond) * axis + np.sin(beyond) * side) * draw.uniform(20, 3000) * 2.0**-149 / tiny
        scored = scores(points * tiny, 0.0, query)
        threshold = np.nextafter(scored.max(), np.float32(-1))
        expected = np.flatnonzero(scored > threshold)
        np.testing.assert_array_equal(Index(points * tiny, method="tree").query(query, threshold), expected)


def test_scores_refuse_what_does_not_fit():
    with pytest.raises(InvalidArgument, match="direction must be a vector of 2 numbers"):
        scores([[1.0, 2.0]], 0.0, [1.0, 2.0, 3.0])
    with pytest.raises(InvalidArgument, match="offsets must be a number or a vector of 1"):
        scores([[1.0, 2.0]], [1.0, 2.0], [1.0, 2.0])


def test_ids_beyond_int64_are_named_as_given(make):
    index = make(np.eye(2))
    with pytest.raises(InvalidArgument, match=f"ids must be in the index; got {2**63 + 1}"):
        index.remove(np.array([2**63 + 1], dtype=np.uint64))
    assert len(index) == 2
