"""Methods from outside: registered under a name, they serve as those that come with fewfire."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire import FileFormatError, InvalidArgument, halfspace
from fewfire.halfspace import Index, Reporter, register_method, unregister_method
from fewfire.halfspace._methods import METHODS
from fewfire.halfspace._reference import ReferenceReporter

DRAW = np.random.default_rng(3)
POINTS = DRAW.normal(size=(200, 3)).astype(np.float32)


@pytest.fixture
def toy():
    """The method "toy", registered for one test."""
    register_method("toy", ReferenceReporter)
    yield
    if "toy" in METHODS:
        unregister_method("toy")


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
    unregister_method("toy")
    with pytest.raises(FileFormatError, match="method must be one of 'auto', 'scan', 'tree', 'screen', 'layers'"):
        halfspace.load(tmp_path / "index")


@pytest.fixture
def line():
    register_method("line", ReferenceReporter, dimension=1, offsets=False)
    yield
    unregister_method("line")


def test_a_method_states_what_it_can_hold(line):
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


def test_what_was_not_registered_stays():
    with pytest.raises(InvalidArgument, match="name must be that of something registered from outside; got 'scan'"):
        unregister_method("scan")


def test_the_register_is_read_only():
    assert list(METHODS) == ["scan", "tree", "screen", "layers"]
    with pytest.raises(TypeError):
        METHODS["other"] = METHODS["scan"]


def test_the_reference_follows_the_protocol():
    reporter: Reporter = ReferenceReporter(2)
    assert reporter.size == 0
