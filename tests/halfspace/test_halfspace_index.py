"""The methods that come with fewfire pass the public suite; threads and constructors."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire import InvalidArgument
from fewfire.halfspace import Index
from fewfire.testing import HalfspaceConformance
from fewfire.testing._halfspace import OFFSETS, POINTS, QUERIES


class TestIndex(HalfspaceConformance):
    """Every method, and the reference implementation: the fixture `make` of this folder."""


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    expected = Index(POINTS, OFFSETS, "scan", threads=1).query_batch(QUERIES, 1.0)
    for method in ("scan", "screen", "tree"):
        report = Index(np.tile(POINTS, (3, 1)), np.tile(OFFSETS, 3), method, threads=threads).query_batch(QUERIES, 1.0)
        assert (report.counts == 3 * expected.counts).all()
        np.testing.assert_array_equal(report.row(3)[: expected.counts[3]], expected.row(3))


def test_the_constructor_names_what_is_wrong():
    with pytest.raises(InvalidArgument, match="method must be one of"):
        Index(POINTS, method="kd-tree")
    with pytest.raises(InvalidArgument, match=r"points must be a table of shape \(count, d\); got shape \(3,\)"):
        Index([1.0, 2.0, 3.0])
    with pytest.raises(
        InvalidArgument, match="method may be 'layers' only for points in the plane; got a dimension of 5"
    ):
        Index(POINTS, method="layers")
    with pytest.raises(InvalidArgument, match=r"offsets must be 0 with method='layers'; got 1.5"):
        Index([[1.0, 2.0]], [1.5], method="layers")
    with pytest.raises(InvalidArgument, match="threads must be"):
        Index(POINTS, threads=0)
