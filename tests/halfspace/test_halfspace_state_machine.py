"""Any interleaving of insertions, removals, updates and queries equals a Python dictionary of points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from fewfire import InvalidArgument
from fewfire.halfspace import Index, scores

COUNTS = st.sampled_from([0, 1, 3, 70, 700, 2500])
SEEDS = st.integers(0, 2**32 - 1)


class AgainstDictionary(RuleBasedStateMachine):
    """Points on a coarse grid, so that ties with the threshold are common."""

    method = "scan"

    @initialize(dimension=st.sampled_from([1, 2, 3, 9]), seed=SEEDS)
    def start(self, dimension, seed):
        self.dimension = 2 if self.method == "layers" else dimension
        self.model: dict[int, tuple[np.ndarray, float]] = {}
        self.next_id = 0
        points, offsets = self.draw(20, seed)
        self.index = Index(points, offsets, self.method)
        self.learn(np.arange(20), points, offsets)
        self.next_id = 20

    def draw(self, count, seed):
        draw = np.random.default_rng(seed)
        points = (draw.integers(-4, 5, size=(count, self.dimension)) / 2).astype(np.float32)
        offsets = (draw.integers(-2, 3, size=count) / 2).astype(np.float32)
        return points, offsets * (self.method != "layers")

    def learn(self, ids, points, offsets):
        self.model.update(zip(ids.tolist(), zip(points, offsets.tolist(), strict=True), strict=True))

    def some(self, count, seed):
        return np.random.default_rng(seed).permutation(sorted(self.model))[:count].astype(np.int64)

    @rule(count=COUNTS, seed=SEEDS)
    def insert(self, count, seed):
        points, offsets = self.draw(count, seed)
        ids = self.index.insert(points, offsets)
        assert ids.tolist() == list(range(self.next_id, self.next_id + count))
        self.next_id += count
        self.learn(ids, points, offsets)

    @rule(count=COUNTS, seed=SEEDS)
    def remove(self, count, seed):
        ids = self.some(count, seed)
        self.index.remove(ids)
        for id_ in ids.tolist():
            del self.model[id_]

    @rule(count=COUNTS, seed=SEEDS, near=st.booleans())
    def update(self, count, seed, near):
        ids = self.some(count, seed)
        points, offsets = self.draw(len(ids), seed)
        if near and len(ids):
            points = np.stack([self.model[i][0] for i in ids.tolist()]) + points * np.float32(2**-10)
        self.index.update(ids, points, offsets)
        self.learn(ids, points, offsets)

    @rule(seed=SEEDS)
    def refuse_unknown(self, seed):
        with pytest.raises(InvalidArgument, match="must be in the index"):
            self.index.remove([*self.some(2, seed).tolist(), self.next_id])

    @rule(queries=st.sampled_from([1, 7, 9]), seed=SEEDS, threshold=st.integers(-4, 12))
    def query(self, queries, seed, threshold):
        rows, _ = self.draw(queries, seed)
        report = self.index.query_batch(rows, threshold / 2, scores=True)
        ids = np.array(sorted(self.model), dtype=np.int64)
        points = np.array([self.model[i][0] for i in ids.tolist()]).reshape(-1, self.dimension)
        offsets = np.array([self.model[i][1] for i in ids.tolist()])
        for i, row in enumerate(rows):
            exact = scores(points, offsets, row)
            np.testing.assert_array_equal(report.row(i), ids[exact > threshold / 2])
            np.testing.assert_array_equal(report.row_scores(i), exact[exact > threshold / 2])

    @invariant()
    def same_size(self):
        if hasattr(self, "index"):
            assert len(self.index) == len(self.model)


@pytest.mark.parametrize("method", ["scan", "tree", "screen", "layers", "auto"])
def test_any_interleaving_equals_a_dictionary(method):
    machine = type(f"With{method.title()}", (AgainstDictionary,), {"method": method})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=15))
