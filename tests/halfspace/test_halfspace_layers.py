"""Convex layers (sublinear, Corollary 6.2, part 2): exact in the plane, and a cost that follows what is reported."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire.halfspace import Index, scores


@settings(max_examples=200)
@given(
    st.integers(257, 400),
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(-5, 5), st.integers(-5, 5)),
    st.integers(-10, 10),
)
def test_collinear_and_repeated_points_are_reported_exactly(count, seed, query, threshold):
    # Over 256, so that they are peeled and not just scanned; drawn by NumPy, as hypothesis takes long for so many.
    table = np.random.default_rng(seed).integers(-3, 4, size=(count, 2)).astype(np.float32)
    index = Index(table, method="layers")
    expected = np.flatnonzero(scores(table, 0.0, query) > threshold)
    np.testing.assert_array_equal(index.query(query, threshold), expected)


@pytest.mark.parametrize("shape", ["disc", "circle", "line", "gaussian", "spread"])
def test_clouds_of_every_shape(shape):
    draw = np.random.default_rng(1)
    angle, radius = draw.uniform(0, 2 * np.pi, 3000), np.sqrt(draw.uniform(size=3000))
    table = {
        "disc": np.c_[radius * np.cos(angle), radius * np.sin(angle)],
        "circle": np.c_[np.cos(angle), np.sin(angle)],
        "line": np.c_[angle, 3 * angle],
        "gaussian": draw.normal(size=(3000, 2)),
        "spread": draw.normal(size=(3000, 2)) * 10.0 ** draw.uniform(-20, 20, size=(3000, 1)),
    }[shape].astype(np.float32)
    index = Index(table, method="layers")
    for query in draw.normal(size=(50, 2)).astype(np.float32):
        exact = scores(table, 0.0, query)
        for threshold in np.quantile(exact, [0.5, 0.99, 1.0]).astype(np.float32):
            np.testing.assert_array_equal(index.query(query, threshold), np.flatnonzero(exact > threshold))


def test_scores_on_request_from_layers_and_from_the_tail():
    draw = np.random.default_rng(4)
    table = draw.normal(size=(3000, 2)).astype(np.float32)
    index = Index(table[:2900], method="layers")
    index.insert(table[2900:])  # few enough to stay unpeeled
    queries = draw.normal(size=(20, 2))
    report = index.query_batch(queries, 1.0, scores=True)
    assert (report.indices >= 2900).any()
    for i, query in enumerate(queries):
        np.testing.assert_array_equal(report.row_scores(i), scores(table[report.row(i)], 0.0, query))


@pytest.mark.usefixtures("core")
def test_a_query_touches_little_more_than_it_reports():
    draw = np.random.default_rng(2)
    index = Index(draw.normal(size=(20_000, 2)), method="layers")
    queries = draw.normal(size=(200, 2))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    report = index.query_batch(queries, 3.3)
    counters = index.counters
    assert counters.reported == report.indptr[-1] > 1000
    # On each layer met, two vertices that are not above end the walk; the last layer met reports nothing.
    assert counters.points <= counters.reported + 2 * counters.nodes
    assert counters.nodes <= counters.reported + 200


@pytest.mark.usefixtures("core")
def test_the_scan_touches_everything_and_the_tree_little():
    draw = np.random.default_rng(3)
    points, queries = draw.normal(size=(20_000, 2)), draw.normal(size=(10, 2))
    reports = {}
    for method in ("scan", "tree", "layers"):
        index = Index(points, method=method)
        reports[method] = index.query_batch(queries, 4 * np.linalg.norm(queries, axis=1))
        touched = index.counters.points / 10
        assert touched == 20_032 if method == "scan" else touched < 500  # 313 blocks of 64
    assert all((report.indices == reports["scan"].indices).all() for report in reports.values())


@pytest.mark.usefixtures("core")
def test_equal_points_share_a_layer():
    index = Index(np.tile([[1.0, 2.0], [0.0, 0.0]], (5000, 1)), method="layers")
    assert index.query([1, 1], 2.0).tolist() == list(range(0, 10_000, 2))
    assert index.counters.nodes == 1
    index.remove(np.arange(0, 5000))
    index.insert([[1.0, 2.0]])
    assert index.query([1, 1], 2.0).tolist() == [*range(5000, 10_000, 2), 10_000]
