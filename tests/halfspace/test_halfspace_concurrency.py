"""Queries in several threads at once, changes between them: each answer is that of some state there was."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from fewfire.halfspace import Index


@pytest.mark.parametrize("method", ["scan", "screen", "tree", "auto"])
def test_queries_and_changes_from_many_threads(method):
    draw = np.random.default_rng(0)
    steady = draw.normal(size=(9000, 4)).astype(np.float32)
    index = Index(steady, method=method, threads=2)
    queries = draw.normal(size=(12, 4)).astype(np.float32)
    expected = Index(steady, method="scan").query_batch(queries, 2.0)
    wrong, done = [], threading.Event()

    def ask():
        while not done.is_set():
            report = index.query_batch(queries, 2.0)
            for i in range(12):
                # Points come and go with ids from 9000 on; those below stay.
                row = report.row(i)
                if not np.array_equal(row[row < 9000], expected.row(i)):
                    wrong.append(i)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for round_ in range(15):
        ids = index.insert(draw.normal(size=(700, 4)))
        index.update(ids[::2], draw.normal(size=(350, 4)))
        index.remove(ids if round_ % 2 else ids[:600])
    done.set()
    for asker in askers:
        asker.join()
    assert wrong == []
    assert len(index) == 9000 + 8 * 100
