"""Noisy parities of random supports: how large ones do the classical learners find, in what time and memory?

    python benchmarks/noisy_parity.py [dense | sparse] [--seeds 10]

`dense`: `WalshParity`, which compares all 2ⁿ sets, on half of n columns. `sparse`: 4 of n columns at noise 0.1 by
`MeetInTheMiddleParity`, the mean over seeds, against `ExhaustiveParity`, both on one thread. Asked: every support found,
and at n = 1000 at least a tenth of the exhaustive search's time. Seconds are those of the processor, so that other work
on the machine counts little; memory is the largest that a fit allocates, besides the table of int8.
"""

from __future__ import annotations

import argparse
import json
import sys
import tracemalloc
from statistics import mean
from time import process_time
from typing import NamedTuple

import numpy as np

from fewfire.learners.baselines import ExhaustiveParity, MeetInTheMiddleParity, WalshParity
from fewfire.problems import Parity

ASKED = 10.0
DENSE = ((16, 0.4, 2_000), (20, 0.45, 10_000), (24, 0.49, 250_000), (26, 0.498, 4_500_000))
SPARSE = (100, 300, 1000)
EXAMPLES, NOISE, K = 250, 0.1, 4


class Fit(NamedTuple):
    """Whether the support was found, in what time, and what the fit allocated at most."""

    found: bool
    seconds: float
    mib: float


def fit(model: object, n: int, k: int, noise: float, examples: int, seed: int) -> Fit:
    support = np.sort(np.random.default_rng(seed).choice(n, k, replace=False)).tolist()
    X, y = Parity(n, support=support, noise=noise).sample(examples, seed)
    tracemalloc.start()
    began = process_time()
    model.fit(X, y)
    seconds, (_, peak) = process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Fit(model.support_ == tuple(support), seconds, peak / 2**20)


def dense() -> list[dict[str, object]]:
    rows = []
    print(f"{'n':>5} {'noise':>6} {'examples':>10} {'found':>6} {'seconds':>8} {'MiB':>6}")
    for n, noise, examples in DENSE:
        one = fit(WalshParity(n_jobs=1), n, n // 2, noise, examples, 0)
        print(f"{n:5d} {noise:6g} {examples:10,d} {one.found!s:>6} {one.seconds:8.2f} {one.mib:6.0f}", flush=True)
        rows.append({"n": n, "noise": noise, "examples": examples, **one._asdict()})
    return rows


def sparse(seeds: int) -> list[dict[str, object]]:
    rows = []
    print(f"{'n':>5} {'found':>7} {'seconds':>8} {'worst':>8} {'MiB':>6} {'exhaustive':>11} {'ratio':>6}")
    for n in SPARSE:
        fits = [
            fit(MeetInTheMiddleParity(k=K, noise=NOISE, random_state=seed), n, K, NOISE, EXAMPLES, seed)
            for seed in range(seeds)
        ]
        whole = fit(ExhaustiveParity(k=K, n_jobs=1), n, K, NOISE, EXAMPLES, 0)
        seconds, worst, mib = (
            mean(one.seconds for one in fits),
            max(one.seconds for one in fits),
            max(one.mib for one in fits),
        )
        found = sum(one.found for one in fits)
        ratio = whole.seconds / seconds
        row = f"{n:5d} {found:4d}/{seeds:<2d} {seconds:8.3f} {worst:8.3f} {mib:6.0f} {whole.seconds:11.2f} {ratio:6.1f}"
        print(row, flush=True)
        values = {"n": n, "found": found, "seconds": seconds, "worst": worst, "mib": mib, "exhaustive": whole.seconds}
        rows.append(values | {"ratio": ratio, "missed": seeds - found + (not whole.found)})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", nargs="?", choices=("dense", "sparse"))
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    result: dict[str, object] = {"name": "noisy_parity", "asked": ASKED}
    good = True
    if arguments.verb != "sparse":
        result["dense"] = rows = dense()
        good = all(row["found"] for row in rows)
    if arguments.verb != "dense":
        result["sparse"] = rows = sparse(arguments.seeds)
        result["ratio"] = ratio = rows[-1]["ratio"]
        good = good and ratio >= ASKED and not any(row["missed"] for row in rows)
    print(json.dumps(result))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
