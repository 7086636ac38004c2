"""Does a table of 200,000 × 50 fit in 4 GiB, and does the forecast of its time hold?

A default fit (classes from products, sums and a swing of a few of the columns, some values missing) in a process of its
own; its peak resident memory, the data included, is what getrusage says at the end. `--epochs` bounds the epochs of
networks: memory does not depend on them, and two take minutes less than all.

    python benchmarks/tabular_large.py [--rows 200000] [--epochs 2] [--jobs 1] [--no-trees]

Asked: at most 4 GiB. The forecast is of a whole fit, and judged where epochs are not bounded: within a factor of three.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time

GIB, SPREAD = 4.0, 3.0
COLUMNS, MISSING = 50, 0.02
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def fit(rows: int, epochs: int | None, jobs: int, trees: bool) -> None:
    """What the child does: fit, and tell seconds, peak memory and the share of fresh rows that are right."""
    import resource

    import numpy as np

    import fewfire as ff
    from fewfire.tabular import AdamW

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows + 10_000, COLUMNS))
    score = X[:, 0] * X[:, 1] + X[:, 2] + np.sin(3 * X[:, 3]) + 0.5 * rng.normal(size=len(X))
    y = (score > 0).astype(np.int64)
    X[rng.random(X.shape) < MISSING] = np.nan
    optimiser = None if epochs is None else AdamW(epochs=epochs)
    model = ff.SparseInitClassifier(optimiser=optimiser, trees=trees, n_jobs=jobs, random_state=0, verbose=True)
    begin = time.perf_counter()
    model.fit(X[:rows], y[:rows])
    seconds = time.perf_counter() - begin
    right = float(model.score(X[rows:], y[rows:]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(model.summary(), file=sys.stderr)
    print(json.dumps({"seconds": seconds, "peak_gib": peak, "right": right}))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-trees", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        fit(options.rows, options.epochs, options.jobs, not options.no_trees)
        return 0
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, *sys.argv[1:], "--child"]
    done = subprocess.run(command, env=os.environ | one, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return 1
    found = json.loads(done.stdout.splitlines()[-1])
    told = next(line for line in done.stderr.splitlines() if "rows ×" in line)
    amount, unit = re.search(r"about ([\d.]+) (s|min|h)", told).groups()
    found |= {"rows": options.rows, "columns": COLUMNS, "jobs": options.jobs, "forecast": float(amount) * UNITS[unit]}
    print(told)
    print(*done.stderr.splitlines()[-12:], sep="\n")
    print(
        f"took {found['seconds']:.0f} s, at most {found['peak_gib']:.2f} GiB; {found['right']:.1%} of fresh rows right"
    )
    met = found["peak_gib"] <= GIB
    if options.epochs is None:
        met &= 1 / SPREAD <= found["seconds"] / found["forecast"] <= SPREAD
    print(json.dumps(found | {"met": met}))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
