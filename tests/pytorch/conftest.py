"""What the tests of PyTorch tools share."""

import pytest


@pytest.fixture
def counted(monkeypatch):
    """The sparse forwards that took their sparse path, one entry per call."""
    pytest.importorskip("torch")
    from fewfire.torch import _forwards

    calls = []
    run = _forwards.SparseForward._run
    monkeypatch.setattr(_forwards.SparseForward, "_run", lambda self, *args: (calls.append(self), run(self, *args))[1])
    return calls
