"""Every method an index can use, with and without the C++ part."""

from __future__ import annotations

import pytest

from fewfire import halfspace

ANY_DIMENSION = ("scan", "tree", "screen", "auto")


@pytest.fixture(params=[*ANY_DIMENSION, "reference"])
def make(request):
    """A function that makes an index: of each method, and of the reference implementation that serves without the C++ part."""
    if request.param == "reference":
        request.getfixturevalue("without_core")
        return halfspace.Index
    return lambda points, offsets=None, **options: halfspace.Index(points, offsets, request.param, **options)
