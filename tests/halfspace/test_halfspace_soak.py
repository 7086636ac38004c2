"""Half an hour of random changes and queries against a NumPy model; nothing may differ and memory has to come back."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import numpy as np
import pytest

from fewfire.halfspace import Index, scores

MINUTES = float(os.environ.get("FEWFIRE_SOAK_MINUTES", "30"))


def resident() -> int:
    """Bytes of memory this process holds, apart from freed memory that the allocator keeps for later."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with Path("/proc/self/statm").open() as handle:
        return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Model:
    """The points of several indexes, in plain arrays."""

    def __init__(self, dimension, methods, draw):
        self.draw, self.dimension = draw, dimension
        self.indexes = [Index(np.empty((0, dimension)), method=method) for method in methods]
        self.ids, self.points = np.empty(0, dtype=np.int64), np.empty((0, dimension), dtype=np.float32)
        self.offsets = np.empty(0, dtype=np.float32)
        self.plain = "layers" in methods

    def fresh(self, count):
        scale = self.draw.choice([1.0, 1e-3, 1e3])
        points = scale * self.draw.normal(size=(count, self.dimension))
        if self.draw.random() < 0.3:
            points = np.round(points)
        return points.astype(np.float32), (0 if self.plain else 1) * self.draw.normal(size=count).astype(np.float32)

    def insert(self, count):
        points, offsets = self.fresh(count)
        ids = [index.insert(points, offsets) for index in self.indexes]
        assert all((other == ids[0]).all() for other in ids)
        self.ids = np.concatenate([self.ids, ids[0]])
        self.points, self.offsets = np.concatenate([self.points, points]), np.concatenate([self.offsets, offsets])

    def remove(self, count):
        gone = self.draw.permutation(len(self.ids))[:count]
        for index in self.indexes:
            index.remove(self.ids[gone])
        self.ids, self.points, self.offsets = (
            np.delete(a, gone, axis=0) for a in (self.ids, self.points, self.offsets)
        )

    def update(self, count):
        at = self.draw.permutation(len(self.ids))[:count]
        points, offsets = self.fresh(len(at))
        if self.draw.random() < 0.5:
            points, offsets = self.points[at] * np.float32(1.001), self.offsets[at]
        for index in self.indexes:
            index.update(self.ids[at], points, offsets)
        self.points[at], self.offsets[at] = points, offsets

    def query(self, count):
        queries = self.draw.normal(size=(count, self.dimension)).astype(np.float32)
        thresholds = np.zeros(count, dtype=np.float32)
        expected = []
        for i, query in enumerate(queries):
            exact = scores(self.points, self.offsets, query)
            if len(exact):
                thresholds[i] = self.draw.choice(exact)
            expected.append(self.ids[exact > thresholds[i]])
        for index in self.indexes:
            report = index.query_batch(queries, thresholds)
            assert all(np.array_equal(report.row(i), expected[i]) for i in range(count)), index


def exercise(seed):
    draw = np.random.default_rng(seed)
    dimension = int(draw.choice([1, 2, 3, 8, 24, 65]))
    methods = ["scan", "tree", "screen", "auto"] + (["layers"] if dimension == 2 else [])
    model = Model(dimension, methods, draw)
    for _ in range(60):
        limit = 200 if len(model.ids) > 20_000 else 5000
        action = str(draw.choice(["insert", "insert", "remove", "update", "query", "query"]))
        getattr(model, action)(int(draw.integers(1, 12)) if action == "query" else int(draw.integers(0, limit)))


@pytest.mark.slow
def test_soak():
    end, seed, start = time.monotonic() + 60 * MINUTES, 0, 0
    while time.monotonic() < end:
        exercise(seed)
        seed += 1
        if seed == 5:
            start = resident()  # after caches and arenas have settled
    assert seed > 5
    assert resident() < start + 20e6
