"""A device for the tests of the CUDA engine."""

import pytest
from fake_cuda import FakeDevice


@pytest.fixture
def fake_device(monkeypatch):
    """An H200 that does nothing."""
    return FakeDevice().install(monkeypatch)
