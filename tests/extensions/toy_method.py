"""A half-space method from outside the package."""

import numpy as np

from fewfire.halfspace import scores


class ToyReporter:
    """Points in a dictionary, scored one by one; nothing but what the protocol asks for."""

    def __init__(self, dimension: int) -> None:
        self.kept: dict[int, tuple[np.ndarray, np.float32]] = {}
        self.dimension = dimension
        self.counters = [0] * 6

    def insert(self, ids, rows, offsets, threads):
        wrong = next((i for i, id_ in enumerate(ids.tolist()) if id_ in self.kept), -1)
        if wrong < 0:
            self.kept.update({id_: (row.copy(), b) for id_, row, b in zip(ids.tolist(), rows, offsets, strict=True)})
        return wrong

    def remove(self, ids, threads):
        wrong = self._unknown(ids)
        if wrong < 0:
            for id_ in ids.tolist():
                del self.kept[id_]
        return wrong

    def update(self, ids, rows, offsets, threads):
        wrong = self._unknown(ids)
        if wrong < 0:
            self.kept.update({id_: (row.copy(), b) for id_, row, b in zip(ids.tolist(), rows, offsets, strict=True)})
        return wrong

    def query(self, rows, thresholds, threads):
        ids, points, offsets = self.points()
        found = [np.sort(ids[scores(points, offsets, a) > t]) for a, t in zip(rows, thresholds, strict=True)]
        self.counters[0] += len(rows)
        return np.cumsum([0, *map(len, found)]), np.concatenate([np.empty(0, np.int64), *found])

    def points(self):
        rows = np.array([row for row, _ in self.kept.values()], dtype=np.float32).reshape(-1, self.dimension)
        offsets = np.array([offset for _, offset in self.kept.values()], dtype=np.float32)
        return np.array(list(self.kept), dtype=np.int64), rows, offsets

    def _unknown(self, ids):
        return next((i for i, id_ in enumerate(ids.tolist()) if id_ not in self.kept), -1)

    @property
    def size(self):
        return len(self.kept)

    @property
    def memory(self):
        return 0
