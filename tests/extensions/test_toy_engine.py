"""What docs/architecture.md describes of adding an engine: one class outside the package, and the public suite passes."""

import pytest
from toy_engine import ToyEngine

from fewfire.engines import get_engine, register_engine, unregister_engine
from fewfire.sweeps import MemoryStore, Sweep
from fewfire.testing import EngineConformance

SPEC = {
    "problem": {"name": "parity", "n": 8, "k": 2},
    "network": {"start": "dense", "width": 5},
    "data": {"samples": [30, "online"], "test_samples": 40},
    "training": {"steps": 20, "batch_size": 8},
    "trials": 3,
}


class TestToyEngine(EngineConformance):
    def engine(self):
        return ToyEngine()


@pytest.fixture
def registered():
    register_engine("toy", lambda threads: ToyEngine())
    yield
    unregister_engine("toy")


def test_a_sweep_runs_on_it(registered):
    toy, reference = MemoryStore(), MemoryStore()
    state = Sweep.from_dict(SPEC).run(toy, engine="toy")
    Sweep.from_dict(SPEC).run(reference, engine="reference")
    assert state.engine == "toy" and state.ran == 6
    assert toy.columns()["test_error"].tolist() == pytest.approx(reference.columns()["test_error"].tolist())
    assert get_engine("toy").name == "toy"
