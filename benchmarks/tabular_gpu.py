"""Is a default fit of 10,000 × 50 on a GPU four times as fast as on all threads of its machine?

First the same steps on both devices: gradient descent on the three variants of a periodic encoding, probabilities within 1e-4. Then default
fits by device="cpu" with `--threads` threads and by device="cuda", in turns, median of `--repeats`; both must predict fresh rows about as well
(within a point). The exit status is 1 when the devices disagree, or the GPU is less than four times as fast.

    python benchmarks/tabular_gpu.py
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

import numpy as np
from sklearn.datasets import make_classification

import fewfire as ff
from fewfire.tabular import SGD

ASKED = 4.0
DEVICES = ("cpu", "cuda")


def table(rows: int, columns: int):
    """Training rows with their labels, and 2000 fresh rows with theirs."""
    X, y = make_classification(rows + 2000, columns, n_informative=min(8, columns - 2), flip_y=0.05, random_state=0)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def disagreement() -> float:
    """Largest difference of probabilities after the same steps; few epochs: where a row meets a kink, paths part."""
    X, y, *_ = table(601, 10)
    settings = {
        "hidden": (64, 16),
        "members": 2,
        "scaling": "periodic",
        "trees": False,
        "optimiser": SGD(0.05, batch_size=50, epochs=5),
        "random_state": 0,
    }
    ours, theirs = (ff.TabularClassifier(device=device, **settings).fit(X, y) for device in DEVICES)
    return float(np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max())


def fit(device: str, threads: int, data, **settings):
    """Seconds of a default fit, the share of fresh rows that are right, and the model."""
    X, y, fresh, labels = data
    model = ff.TabularClassifier(device=device, random_state=0, n_jobs=threads, **settings)
    begin = time.perf_counter()
    model.fit(X, y)
    taken = time.perf_counter() - begin
    return taken, float(np.mean(model.predict(fresh) == labels)), model


def measure(repeats: int, threads: int, data, **settings) -> dict[str, dict[str, float]]:
    taken: dict[str, list[float]] = {device: [] for device in DEVICES}
    right: dict[str, float] = {}
    for _ in range(repeats):
        for device in DEVICES:
            seconds, right[device], model = fit(device, threads, data, **settings)
            taken[device].append(seconds)
            print(
                f"  {device}: {seconds:.2f} s, {right[device]:.2%} right; {model.summary().splitlines()[-1]}",
                flush=True,
            )
    return {device: {"seconds": statistics.median(taken[device]), "right": right[device]} for device in DEVICES}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--threads", type=int, default=-1)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    threads = chosen.threads if chosen.threads > 0 else len(os.sched_getaffinity(0))
    found: dict[str, object] = {
        "name": "tabular_gpu",
        "threads": threads,
        "rows": chosen.rows,
        "columns": chosen.columns,
    }
    data, apart = table(chosen.rows, chosen.columns), disagreement()
    print(f"probabilities differ by at most {apart}", flush=True)
    for device in DEVICES:  # all is loaded
        fit(device, threads, table(600, 10))
    ratios, level = {}, False
    for name, settings in (("without_trees", {"trees": False}), ("default", {})):
        cpu, gpu = measure(chosen.repeats, threads, data, **settings).values()
        ratios[name] = cpu["seconds"] / gpu["seconds"]
        found[name] = {"cpu": cpu, "cuda": gpu, "ratio": round(ratios[name], 2)}
        level = abs(cpu["right"] - gpu["right"]) <= 0.01
    print(json.dumps({**found, "disagreement": apart, "asked": ASKED}))
    return int(apart > 1e-4 or not level or ratios["default"] < ASKED)


if __name__ == "__main__":
    sys.exit(main())
