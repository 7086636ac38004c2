"""Methods from outside: registered under a name, they serve as those that come with fewfire."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire import FileFormatError, InvalidArgument, halfspace
from fewfire.halfspace import METHODS, Index, Reporter, _methods, register_method, scores
from fewfire.halfspace._reference import ReferenceReporter

DRAW = np.random.default_rng(3)
POINTS = DRAW.normal(size=(200, 3)).astype(np.float32)


class ListReporter:
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


@pytest.fixture
def toy(monkeypatch):
    """The method "toy", registered for one test."""
    monkeypatch.setattr(_methods, "_methods", registered := dict(_methods._methods))
    monkeypatch.setattr(_methods, "METHODS", registered)
    monkeypatch.setattr("fewfire.halfspace._index.METHODS", registered)
    register_method("toy", ListReporter)
    return registered


def test_a_registered_method_serves_an_index(toy):
    index, scan = Index(POINTS, 0.25, method="toy"), Index(POINTS, 0.25, method="scan")
    assert (index.method, str(index.plan)) == ("toy", "toy: as asked")
    for kept in (index, scan):
        kept.remove([5, 7])
        kept.update([1], [[9.0, 9.0, 9.0]])
        assert kept.insert([[8.0, 8.0, 8.0]]).tolist() == [200]
    queries = DRAW.normal(size=(10, 3))
    np.testing.assert_array_equal(index.query_batch(queries, 1.0).indices, scan.query_batch(queries, 1.0).indices)
    np.testing.assert_array_equal(index.query(queries[0], 1.0), scan.query(queries[0], 1.0))
    assert index.ids.tolist() == scan.ids.tolist()
    assert index.counters.queries == 11
    with pytest.raises(InvalidArgument, match="ids must be in the index; got 7"):
        index.remove([7])


def test_files_name_the_method(toy, tmp_path):
    Index(POINTS, method="toy").save(tmp_path / "index")
    assert halfspace.load(tmp_path / "index").requested == "toy"
    del toy["toy"]
    with pytest.raises(FileFormatError, match="method must be one of 'auto', 'scan', 'tree', 'screen', 'layers'"):
        halfspace.load(tmp_path / "index")


def test_a_method_says_what_it_can_hold(toy):
    register_method("line", ReferenceReporter, dimension=1, offsets=False)
    assert Index([[1.0], [2.0]], method="line").query([1.0], 1.5).tolist() == [1]
    with pytest.raises(
        InvalidArgument, match="method may be 'line' only for points of dimension 1; got a dimension of 3"
    ):
        Index(POINTS, method="line")
    with pytest.raises(InvalidArgument, match="offsets must be 0 with method='line'; got 2.0"):
        Index([[1.0]], 2.0, method="line")
    index = Index([[1.0]], method="line")
    with pytest.raises(InvalidArgument, match="offsets must be 0 with method='line'; got 3.0"):
        index.insert([[2.0]], 3.0)


@pytest.mark.parametrize("name", ["auto", "scan", "", 3])
def test_names_are_given_once(name):
    with pytest.raises(
        InvalidArgument,
        match="name must be a name other than 'auto', 'scan', 'tree', 'screen', 'layers'; got .*Remedy: choose a new one",
    ):
        register_method(name, ReferenceReporter)


def test_the_register_is_read_only():
    assert list(METHODS) == ["scan", "tree", "screen", "layers"]
    with pytest.raises(TypeError):
        METHODS["other"] = METHODS["scan"]


def test_the_twin_follows_the_protocol():
    reporter: Reporter = ReferenceReporter(2)
    assert reporter.size == 0
