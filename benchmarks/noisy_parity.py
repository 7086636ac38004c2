"""Noisy parities of random supports: how large ones do the classical learners find, in what time and memory?

    python benchmarks/noisy_parity.py [dense | sparse | needs] [--seeds 10]

`needs`: at how many examples half of the fits find 3 of 20 columns, by method and noise, elimination and SGD (width 300,
2-sparse start, 20,000 steps, pareto C.1) among them; a minute of one core.

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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fewfire.learners.baselines import ExhaustiveParity, GaussianElimination, MeetInTheMiddleParity, WalshParity
from fewfire.problems import Parity
from fewfire.sweeps import MemoryStore, Sweep, estimate_frontier, found_frontiers

if TYPE_CHECKING:
    from collections.abc import Callable

ASKED = 10.0
DENSE = ((16, 0.4, 2_000), (20, 0.45, 10_000), (24, 0.49, 250_000), (26, 0.498, 4_500_000))
SPARSE = (100, 300, 1000)
EXAMPLES, NOISE, K = 250, 0.1, 4
NEEDS = (0.0, 0.1, 0.2, 0.3)
SGD = {
    "problem": {"name": "parity", "n": 20, "k": 3, "noise": list(NEEDS)},
    "network": {"start": {"name": "sparse", "s": 2}, "width": 300},
    "training": {"steps": 20_000, "learning_rate": 0.1, "weight_decay": 0.01, "stop_error": 0.1, "evaluate": 500},
    "search": {"axis": "data.samples", "low": 20, "high": 20_000, "precision": 0.3},
    "success_error": 0.1,
}


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


def frontier(make: Callable[[], object], noise: float, seeds: int) -> object:
    """Where half of the fits find 3 of 20 columns: samples 25% apart, up to where all do."""
    values, found = [], []
    while not found or found[-1] < seeds:
        values.append(round(8 * 1.25 ** len(values)))
        found.append(0)
        for seed in range(seeds):
            support = np.sort(np.random.default_rng(seed).choice(20, 3, replace=False)).tolist()
            X, y = Parity(20, support=support, noise=noise).sample(values[-1], seed)
            found[-1] += abs(y.sum()) < len(y) and make().fit(X, y).support_ == tuple(support)
    return estimate_frontier(values, found, [seeds] * len(values))


def needs() -> list[dict[str, object]]:
    store, sweep = MemoryStore(), Sweep.from_dict(SGD)
    sweep.run(store, engine="cpu", executor="inline")
    networks = {one.spec.problem.noise: one.estimate for one in found_frontiers(sweep, store)}
    rows = []
    for noise in NEEDS:
        methods = {
            "ExhaustiveParity": lambda: ExhaustiveParity(k=3, n_jobs=1),
            "MeetInTheMiddleParity": lambda noise=noise: MeetInTheMiddleParity(k=3, noise=noise, random_state=0),
            "WalshParity": lambda: WalshParity(n_jobs=1),
        }
        if noise == 0.0:
            methods["GaussianElimination"] = GaussianElimination
        located = {name: frontier(make, noise, 30) for name, make in methods.items()} | {"SGD": networks[noise]}
        for name, one in located.items():
            print(f"noise {noise:3g} {name:22s} {one.value:7.0f} examples, {one.low:.0f} to {one.high:.0f}", flush=True)
            rows.append({"noise": noise, "method": name, "examples": one.value, "low": one.low, "high": one.high})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", nargs="?", choices=("dense", "sparse", "needs"))
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    result: dict[str, object] = {"name": "noisy_parity", "asked": ASKED}
    good = True
    if arguments.verb in (None, "needs"):
        result["needs"] = needs()
    if arguments.verb in (None, "dense"):
        result["dense"] = rows = dense()
        good = all(row["found"] for row in rows)
    if arguments.verb in (None, "sparse"):
        result["sparse"] = rows = sparse(arguments.seeds)
        result["ratio"] = ratio = rows[-1]["ratio"]
        good = good and ratio >= ASKED and not any(row["missed"] for row in rows)
    print(json.dumps(result))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
