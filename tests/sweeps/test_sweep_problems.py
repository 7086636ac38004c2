"""Problems by name in a sweep's TOML: run, hashed, stored, and drawn alike whatever the engine."""

import importlib.util
import json

import numpy as np
import pytest

from fewfire.engines import get_engine
from fewfire.engines.cuda._kernels import draws
from fewfire.sweeps import MemoryStore, RunSpec, Sweep

REST = """
trials = 2
[network]
start = "dense"
width = 20
[data]
samples = [60, "online"]
test_samples = 50
[training]
steps = 200
learning_rate = 0.05
"""
SQUARE = REST + 'loss = "square"\n'
SPECS = {
    "staircase": '[problem]\nname = "staircase"\nn = 8\nk = [2, 4]\nleap = [1, 2]\nnoise = [0, 0.3]\n',
    "merged staircase": '[problem]\nname = "staircase"\nn = 8\nsets = [[[0], [0, 1], [1, 2]], [[0, 1]]]\n',
    "weighted": '[problem]\nname = "staircase"\nn = 8\nsets = [[0], [0, 1]]\ncoefficients = [[1, 1], [1, -2.5]]\n',
    "named junta": '[problem]\nname = "named_junta"\nn = 8\nk = [1, 3]\nfunction = ["random", "or", "majority"]\n',
    "random juntas": '[problem]\nname = "named_junta"\nn = 8\nk = 3\nseed = [0, 1, 2]\nnoise = [0, 0.1]\n',
    "half-space": '[problem]\nname = "half_space"\nn = 8\nweights = [[2, 1, 1], [1, -1]]\nthreshold = [0, 1]\nnoise = 0.1\n',
}


@pytest.fixture(params=list(SPECS))
def sweep(request, tmp_path):
    rest = SQUARE if 'name = "staircase"' in SPECS[request.param] else REST
    problem, path = SPECS[request.param], tmp_path / "sweep.toml"
    path.write_text(rest.replace("[network]", problem + "[network]"))
    return Sweep.from_toml(path)


def test_it_runs_and_is_found_again(sweep):
    store = MemoryStore()
    assert sweep.run(store, engine="cpu", executor="inline").ran == len(sweep)
    assert sweep.run(store, engine="cpu", executor="inline").ran == 0
    assert set(store.columns()["status"]) == {"done"}
    for spec in sweep.runs():
        again = RunSpec.from_json(spec.canonical)
        assert again == spec and again.hash == spec.hash and again.problem == spec.problem
    assert Sweep.from_dict(json.loads(json.dumps(sweep.to_dict()))) == sweep


def test_every_engine_gets_the_examples_of_the_problem(sweep):
    """No engine draws these problems itself, so each is handed the problem's own arrays."""
    for spec in sweep.runs():
        run = spec.describe()
        assert not draws(spec.problem)
        if run.sample is None:
            continue
        X, y = spec.problem.sample(run.sample.rows, run.sample.stream)
        for name in ("cpu", "reference"):
            drawn = run.drawn(get_engine(name))
            assert np.array_equal(drawn.X, X) and np.array_equal(drawn.y, y.astype(drawn.y.dtype))
            assert np.array_equal(drawn.y_test, spec.problem.target(drawn.X_test).astype(drawn.y_test.dtype))


def test_engines_agree(sweep):
    engines = ["cpu", "reference", *(["jax"] if importlib.util.find_spec("jax") else [])]
    stores = {name: MemoryStore() for name in engines}
    for name, store in stores.items():
        sweep.run(store, engine=name, executor="inline")
    errors = [
        dict(zip(*(store.columns()[key].tolist() for key in ("hash", "test_error")), strict=True))
        for store in stores.values()
    ]
    for other in errors[1:]:
        # Rounding may move one of 50 predictions, or a squared error slightly.
        assert all(abs(error - other[key]) < 0.021 * max(1, error) for key, error in errors[0].items())
