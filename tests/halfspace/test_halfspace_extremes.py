"""Where bounds could fail: sums of codes beyond int32, exponents at the ends; and refusals of the public score."""

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


@pytest.mark.parametrize("method", ["scan", "screen", "tree", "layers"])
def test_a_query_below_the_normal_range_meets_a_huge_point(method):
    index = Index([[-1.0000827912762163e19, 9.999963696622731e18]], method=method)
    assert index.query([-5.605193857299268e-45, 7.006492321624085e-45], 1.2611688e-25).tolist() == [0]


@pytest.mark.parametrize("total", [-149, -126, 0, 127])
@pytest.mark.parametrize("exponent", [-149, -140, -126, -60, 0, 60, 120, 127])
def test_every_method_is_exact_at_the_ends_of_the_exponents(core, exponent, total):
    """Points of one exponent and queries of another, so that scores are near 2^total; thresholds at scores."""
    draw = np.random.default_rng([exponent + 200, total + 200])

    def numbers(shape, base):
        spread = np.clip(base + draw.integers(-4, 3, size=shape), -149, 127)
        return np.ldexp(draw.uniform(-1.9, 1.9, size=shape), spread).astype(np.float32)

    points, queries = numbers((2500, 2), exponent), numbers((60, 2), total - exponent)
    exact = [scores(points, 0.0, query) for query in queries]
    thresholds = np.array([np.nan_to_num(draw.choice(row)) for row in exact], dtype=np.float32)
    for isa in core.available_isas():
        core.set_isa(isa)
        for method in ("scan", "screen", "tree", "layers"):
            report = Index(points, method=method).query_batch(queries, thresholds)
            for i, row in enumerate(exact):
                np.testing.assert_array_equal(report.row(i), np.flatnonzero(row > thresholds[i]), f"{isa} {method}")


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
