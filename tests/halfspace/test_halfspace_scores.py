"""The score that decides: its reference implementation against exact fractions, and every C++ variant against the reference."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire.halfspace import Index, scores

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def to_float32(value: Fraction) -> np.float32:
    """The nearest float32, ties to even, by comparing exact distances."""
    with np.errstate(over="ignore", under="ignore"):
        guess = np.float32(float(value))
        near = [guess, np.nextafter(guess, np.float32(np.inf)), np.nextafter(guess, np.float32(-np.inf))]
    finite = [x for x in near if np.isfinite(x)]
    if not finite or abs(value) >= Fraction(2) ** 128 - Fraction(2) ** 103:
        return np.float32(np.inf if value > 0 else -np.inf)
    return min(finite, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.uint32)) & 1))


@settings(max_examples=300)
@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=4), FLOATS)
def test_one_rounding_a_coordinate_in_order(pairs, offset):
    total = Fraction(0)
    for p, a in pairs:
        rounded = to_float32(Fraction(p) * Fraction(a) + total)
        if not np.isfinite(rounded):
            return  # infinite sums have no fraction; the C++ test below covers them
        total = Fraction(float(rounded))
    expected = to_float32(total + Fraction(offset))
    points, direction = [[p for p, _ in pairs]], [a for _, a in pairs]
    assert scores(points, offset, direction)[0] == expected


def test_the_order_matters_and_is_the_one_stated():
    assert scores([[1e8, 1.0, -1e8]], 0.0, [1, 1, 1]) == [0.0]
    assert scores([[1e8, -1e8, 1.0]], 0.0, [1, 1, 1]) == [1.0]


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 16, 17, 64, 131])
def test_every_instruction_set_reports_by_this_score(core, isa, dimension):
    if isa not in core.available_isas():
        pytest.skip(f"this processor has no {isa}")
    core.set_isa(isa)
    draw = np.random.default_rng(dimension)
    scale = 10.0 ** draw.uniform(-40, 38, size=(130, 1))
    points = np.concatenate([draw.normal(size=(70, dimension)), draw.normal(size=(130, dimension)) * scale / 4])
    points, offsets = points.astype(np.float32), draw.normal(size=200).astype(np.float32)
    queries = draw.normal(size=(13, dimension)).astype(np.float32)
    for method in ("scan", "screen", "tree"):
        index = Index(points, offsets, method)
        for query in queries:
            exact = scores(points, offsets, query)
            for threshold in (0.0, float(exact[3]), float(exact[40])):  # ties: a score is not above itself
                above = np.flatnonzero(exact > threshold)
                assert index.query(query, threshold).tolist() == above.tolist()
                ids, values = index.query(query, threshold, scores=True)
                assert (ids.tolist(), values.tolist()) == (above.tolist(), exact[above].tolist())


@pytest.mark.parametrize("method", ["scan", "screen", "tree"])
@pytest.mark.parametrize("queries", [1, 3, 20])
def test_scores_stay_with_their_ids_where_points_came_and_went(method, queries):
    draw = np.random.default_rng(queries)
    points = dict(enumerate(draw.normal(size=(3000, 9)).astype(np.float32)))
    index = Index(np.stack(list(points.values())), method=method)
    for _ in range(3):  # freed places are filled again, last freed first
        gone = draw.choice(list(points), 900, replace=False)
        index.remove(gone)
        rows = draw.normal(size=(700, 9)).astype(np.float32)
        points = {i: row for i, row in points.items() if i not in set(gone.tolist())}
        points.update(zip(index.insert(rows).tolist(), rows, strict=True))
    A = draw.normal(size=(queries, 9)).astype(np.float32)
    report = index.query_batch(A, 1.5, scores=True)
    ids, rows = np.array(list(points)), np.stack(list(points.values()))
    for q in range(queries):
        exact = scores(rows, 0.0, A[q])
        expected = sorted(zip(ids[exact > 1.5].tolist(), exact[exact > 1.5].tolist(), strict=True))
        assert list(zip(report.row(q).tolist(), report.row_scores(q).tolist(), strict=True)) == expected
