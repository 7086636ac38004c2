"""What docs/architecture.md describes of adding a half-space method: one class outside the package passes the suite."""

import pytest
from toy_method import ToyReporter

from fewfire.halfspace import Index, register_method, unregister_method
from fewfire.testing import HalfspaceConformance


class TestToyMethod(HalfspaceConformance):
    @pytest.fixture
    def make(self):
        register_method("toy", ToyReporter)
        yield lambda points, offsets=None: Index(points, offsets, method="toy")
        unregister_method("toy")
