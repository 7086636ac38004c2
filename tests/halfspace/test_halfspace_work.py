"""Counters: the work of a query follows its method, the data's intrinsic dimension and what is reported."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire.halfspace import Index
from fewfire.halfspace._methods import QueryCounters

DRAW = np.random.default_rng(11)


def normal_rows(count, dimension):
    rows = DRAW.normal(size=(count, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.usefixtures("core")
def test_a_scan_reads_every_block_once_a_batch():
    index = Index(DRAW.normal(size=(1000, 8)), method="scan")
    report = index.query_batch(normal_rows(12, 8), 1.0)
    blocks = 16  # of 64
    assert index.counters == QueryCounters(
        12, int(report.indptr[-1]), 12 * 64 * blocks, 0, 0, blocks * 64 * 4 * (8 + 1)
    )


@pytest.mark.usefixtures("core")
def test_the_screen_rechecks_only_what_its_bound_leaves_open():
    points = DRAW.normal(size=(20_000, 64))
    index = Index(points, method="screen")
    index.query_batch(normal_rows(50, 64), 2.5)
    counters = index.counters
    pairs = 50 * 20_000
    # The bound is about 0.13 at d = 64 and the density at 2.5 is 0.018: half a percent of all pairs.
    assert 0.002 < counters.rechecks / pairs < 0.008
    assert counters.bytes < 20_032 * 64 * 2 + counters.rechecks * 64 * 4


@pytest.mark.usefixtures("core")
def test_few_queries_are_coded_finely_and_leave_half_as_much_open():
    points, queries = DRAW.normal(size=(20_000, 64)), normal_rows(48, 64)
    together, apart = Index(points, method="screen"), Index(points, method="screen")
    report = together.query_batch(queries, 2.5)
    for size in (1, 2, 3):
        before = apart.counters.rechecks
        for start in range(0, 48, size):
            part = apart.query_batch(queries[start : start + size], 2.5)
            for i in range(size):
                assert part.row(i).tolist() == report.row(start + i).tolist()
        assert 0.4 < (apart.counters.rechecks - before) / together.counters.rechecks < 0.6


@pytest.mark.usefixtures("core")
def test_a_tree_prunes_in_low_intrinsic_dimension_and_not_in_high():
    flat = DRAW.normal(size=(50_000, 3)) @ DRAW.normal(size=(3, 32)) / np.sqrt(32)
    queries = normal_rows(20, 32)
    shares = []
    for points in (flat, DRAW.normal(size=(50_000, 32))):
        index = Index(points, method="tree")
        thresholds = np.quantile(points.astype(np.float32) @ queries.T.astype(np.float32), 0.999, axis=0)
        index.query_batch(queries, thresholds)
        shares.append(index.counters.points / (20 * 50_000))
    assert shares[0] < 0.05
    assert shares[1] > 0.9


@pytest.mark.usefixtures("core")
def test_a_subtree_that_is_inside_is_reported_without_looking():
    index = Index(DRAW.normal(size=(30_000, 3)), method="tree")
    assert len(index.query([1, 0, 0], -100.0)) == 30_000
    assert index.counters.points == 0
    assert index.counters.nodes == 1


@pytest.mark.usefixtures("core")
def test_cones_prune_rays_that_balls_do_not():
    # Points along a few rays: a ball around part of a ray is large, its cone is a line.
    rays = normal_rows(200, 16)
    points = np.repeat(rays, 100, axis=0) * DRAW.uniform(0.1, 100, size=(20_000, 1))
    index = Index(points, method="tree")
    index.query_batch(rays[:20], 0.9 * 100)
    assert index.counters.points / (20 * 20_000) < 0.4


@pytest.mark.parametrize("method", ["scan", "screen", "tree"])
def test_memory_comes_back_after_removals(method):
    index = Index(DRAW.normal(size=(2000, 6)), method=method)
    start = index.memory
    for _ in range(20):
        ids = index.insert(DRAW.normal(size=(5000, 6)))
        index.remove(ids)
    assert len(index) == 2000
    assert index.memory < 3 * start


@pytest.mark.usefixtures("core")
def test_a_tree_grows_without_being_rebuilt_each_time():
    index = Index(DRAW.normal(size=(4096, 3)), method="tree")
    for _ in range(40):
        index.insert(DRAW.normal(size=(1000, 3)))
    index.query_batch(normal_rows(10, 3), 3.0)
    # A handful of trees of growing size: more nodes than one tree would visit, far fewer points than all.
    assert index.counters.points / 10 < 0.2 * len(index)
