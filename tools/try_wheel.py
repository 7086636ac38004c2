"""Try an installed fewfire as its first user would: the C++ part is there, every layer answers, the command runs.

    python tools/try_wheel.py

For wheels in an environment of their own, without a compiler and without the repository on the path.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import fewfire as ff
from fewfire._extension import load, without_extension


def main() -> None:
    """Stop at the first thing that is not as it should be."""
    root = Path(__file__).resolve().parent.parent
    location = Path(ff.__file__).resolve()
    expect(not location.is_relative_to(root / "src"), f"fewfire comes from the repository: {location}")
    core = load()
    expect(core is not None, "the C++ part is missing")
    problem = ff.problems.Parity(20, 2, support=[4, 11])
    X, y = problem.sample(500, seed=0)
    network = ff.networks.init.sparse(2)(20, width=200, seed=0)
    schedule = ff.engines.Schedule(ff.engines.Phase(5000, learning_rate=0.1, weight_decay=0.01), stop_error=0.0)
    run = ff.engines.Run(network, schedule, X, y, *problem.sample(2000, seed=1))
    result = ff.engines.get_engine("auto").train([run])[0]
    expect(result.engine == "cpu" and result.test_error == 0.0, f"{result.engine} reached {result.test_error}")
    points = np.random.default_rng(0).normal(size=(10_000, 4))
    found = ff.halfspace.Index(points, method="tree").query([1.0, 0.0, 0.0, 0.0], threshold=3.0)
    expect(sorted(found.tolist()) == np.flatnonzero(points[:, 0] > 3.0).tolist(), "the tree misses points")
    model = ff.TabularClassifier(random_state=0).fit(X[:200], y[:200])
    expect(bool((model.predict_proba(X[:5]).sum(axis=1) > 0.999).all()), "probabilities do not sum to 1")
    with without_extension():
        slow = ff.fourier.transform(np.arange(16.0))
    expect(np.array_equal(slow, ff.fourier.transform(np.arange(16.0))), "C++ and NumPy differ")
    command = Path(sys.executable).parent / "fewfire"
    expect(subprocess.run([command, "doctor"], capture_output=True).returncode == 0, "fewfire doctor fails")
    assert core is not None
    print(f"fewfire {ff.__version__} on Python {sys.version.split()[0]} ({', '.join(core.available_isas())}): works")


def expect(holds: bool, otherwise: str) -> None:
    """Stop with a message where something does not hold."""
    if not holds:
        raise SystemExit(f"try_wheel: {otherwise}")


if __name__ == "__main__":
    main()
