"""Does engine="torch" fit the same models, and from which size on does a GPU pay?

The same steps are checked first: gradient descent on two networks on each of three variants of the inputs (periodic
embeddings with every kind of gains), both engines, probabilities within 1e-4. Then default fits of growing tables and a
wide network, torch against cpu in turns, medians of two. No figure is asked for; the exit status is 1 when the two engines disagree. Needs PyTorch;
without a GPU torch runs on the processor, and the last line says so.

    python benchmarks/tabular_torch.py
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np
import torch

import fewfire as ff
from fewfire._cores import usable_cores
from fewfire._extension import load
from fewfire.tabular import SGD, AdamW

CASES = {
    "default, 1000 × 20": (1000, 20, {}),
    "default, 10,000 × 50": (10_000, 50, {"optimiser": AdamW(epochs=40)}),
    "(4096, 512), 20,000 × 50, 10 epochs": (
        20_000,
        50,
        {"hidden": (4096, 512), "scaling": "standard", "gains": "none", "optimiser": AdamW(epochs=10)},
    ),
}


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=rows) > 0).astype(int)


def disagreement() -> float:
    """Largest difference of probabilities after the same steps by both engines.

    Parts of 450 and 451 rows make 9 and 10 steps. Few epochs: where a row meets a neuron's kink, rounding decides
    whether it counts, and from then on the paths part.
    """
    X, y = table(601, 10)
    settings = {
        "hidden": (64, 16),
        "members": 2,
        "scaling": "periodic",
        "optimiser": SGD(0.05, batch_size=50, epochs=5),
        "random_state": 0,
    }
    ours, theirs = (ff.SparseInitClassifier(engine=engine, **settings).fit(X, y) for engine in ("cpu", "torch"))
    return float(np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max())


def seconds(engine: str, X: np.ndarray, y: np.ndarray, settings: dict) -> float:
    model = ff.SparseInitClassifier(engine=engine, random_state=0, n_jobs=-1, **settings)
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin


def main() -> int:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "processor"
    apart = disagreement()
    print(f"torch on: {device}; probabilities differ by at most {apart:.1e}", flush=True)
    ratios = {}
    for name, (rows, columns, settings) in CASES.items():
        X, y = table(rows, columns)
        taken: dict[str, list[float]] = {"cpu": [], "torch": []}
        for _ in range(2):
            for engine in taken:
                taken[engine].append(seconds(engine, X, y, settings))
        cpu, ours = (statistics.median(taken[engine]) for engine in ("cpu", "torch"))
        ratios[name] = round(cpu / ours, 2)
        print(f"{name}: cpu {cpu:.2f} s, torch {ours:.2f} s, {cpu / ours:.2f} times", flush=True)
    print(
        json.dumps(
            {
                "name": "tabular_torch",
                "ratio": ratios,
                "device": device,
                "disagreement": apart,
                "extension": load() is not None,
                "cores": usable_cores(),
            }
        )
    )
    return int(apart > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
