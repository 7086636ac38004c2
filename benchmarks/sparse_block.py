"""How much faster is a block of two layers when only the neurons that fire are computed, exactly?

`fewfire.torch.sparsify` against the same PyTorch block computed densely, by `torch.nn` and by `torch.compile`, whichever
is faster, on the same threads, in turn. Neurons fire with log-normal probabilities (spread 1) of the stated mean, as in
trained transformers few do often and most do rarely; the blocks of a round are more than four times the third-level
cache together, so no side finds its weights there. Asked, with every core: 4 times (1024 → 4096 → 1024, 3% active, one
row), 1.5 times (16 rows), 4.2 times (4096 → 16384 → 4096, one row); 0.95 times at 30%, where the dense path has to be
chosen. With one thread the same is printed. Largest deviations from float64 of both sides are printed beside. A
`TwoLayer` of 100,000 neurons, 256 inputs, 1% active: one query of `indexed()` at least 3 times its dense forward.

    python benchmarks/sparse_block.py
"""

from __future__ import annotations

import copy
import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import fewfire as ff
import fewfire.torch as ft
from fewfire import _core
from fewfire._cores import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable

# inputs, rows, share of neurons that fire, times faster asked, rounds
CASES = [
    (1024, 1, 0.03, 4.0, 60),
    (1024, 16, 0.03, 1.5, 20),
    (4096, 1, 0.03, 4.2, 20),
    (1024, 1, 0.30, 0.95, 60),
    (1024, 16, 0.30, 0.95, 20),
    (4096, 1, 0.30, 0.95, 20),
]
LEAST_BYTES = 4 * (32 << 20)


def make_block(inputs: int, active: float, seed: int) -> torch.nn.Sequential:
    """Linear → ReLU → Linear of four times the inputs, whose neurons fire on normal inputs as the header says."""
    draw = np.random.default_rng(seed)
    width = 4 * inputs
    chances = np.exp(draw.standard_normal(width))
    for _ in range(50):  # none above 0.95, mean as asked
        chances = np.clip(chances * active / chances.mean(), 1e-7, 0.95)
    block = torch.nn.Sequential(torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, inputs))
    first, second = block[0], block[2]
    with torch.no_grad():
        first.weight.copy_(torch.from_numpy(draw.standard_normal((width, inputs), dtype=np.float32)))
        second.weight.copy_(torch.from_numpy(draw.standard_normal((inputs, width), dtype=np.float32)))
        first.weight /= first.weight.norm(dim=1, keepdim=True)
        second.weight /= width**0.5
        first.bias.copy_(torch.tensor([statistics.NormalDist().inv_cdf(chance) for chance in chances]))
        second.bias.copy_(torch.from_numpy(draw.standard_normal(inputs, dtype=np.float32)))
    return block.eval()


@torch.compile(dynamic=False)
def compiled(x: torch.Tensor, up: torch.Tensor, b: torch.Tensor, down: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(torch.relu(torch.nn.functional.linear(x, up, b)), down, c)


def in_turn(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of each, one after the other in every round; the first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}


def exact(block: torch.nn.Sequential, x: torch.Tensor) -> torch.Tensor:
    return copy.deepcopy(block).double()(x.double())


@torch.no_grad()
def measure(inputs: int, rows: int, active: float, asked: float, rounds: int, threads: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    count = max(1, -(-LEAST_BYTES // (2 * 4 * inputs * 4 * inputs)))
    dense = [make_block(inputs, active, seed) for seed in range(count)]
    sparse = copy.deepcopy(dense)
    # Inputs of norm √inputs: scores are then normal with deviation 1.
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((rows, inputs), dtype=np.float32))
    reports = [ft.sparsify(block, [x], threads=threads) for block in sparse]
    weights = [(block[0].weight, block[0].bias, block[2].weight, block[2].bias) for block in dense]
    taken = in_turn(
        {
            "eager": lambda: [block(x) for block in dense],
            "compiled": lambda: [compiled(x, *arrays) for arrays in weights],
            "sparse": lambda: [block(x) for block in sparse],
        },
        rounds,
    )
    truth = exact(dense[0], x)
    away = {name: float((block[0](x) - truth).abs().max()) for name, block in (("dense", dense), ("sparse", sparse))}
    ratio = min(taken["eager"], taken["compiled"]) / taken["sparse"]
    fired = float((dense[0][0](x) > 0).float().mean())
    row = {
        "ratio": round(ratio, 2),
        "asked": asked,
        "active": round(fired, 4),
        "ms": {name: round(1e3 * seconds / count, 3) for name, seconds in taken.items()},
        "deviation": {name: float(f"{value:.1e}") for name, value in away.items()},
    }
    print(f"{inputs} → {4 * inputs} → {inputs}, {rows} rows, {active:.0%} active, {threads} threads: {row}", flush=True)
    del reports
    return row


def two_layer(rounds: int) -> dict[str, Any] | None:
    """One query of a wide `TwoLayer`, by its index and densely."""
    if not hasattr(ff.networks.TwoLayer, "indexed"):
        return None
    draw, width, inputs = np.random.default_rng(0), 100_000, 256
    hidden = draw.standard_normal((width, inputs), dtype=np.float32)
    hidden /= np.linalg.norm(hidden, axis=1, keepdims=True)
    bias = np.full(width, statistics.NormalDist().inv_cdf(0.01), dtype=np.float32)
    network = ff.networks.TwoLayer(hidden, bias, draw.standard_normal(width, dtype=np.float32))
    indexed, x = network.indexed(), draw.standard_normal((1, inputs), dtype=np.float32)
    taken = in_turn({"dense": lambda: network(x), "indexed": lambda: indexed(x)}, rounds)
    row = {
        "ratio": round(taken["dense"] / taken["indexed"], 2),
        "asked": 3.0,
        "ms": {name: round(1e3 * seconds, 3) for name, seconds in taken.items()},
    }
    print(f"TwoLayer, 100,000 neurons, 256 inputs, one query: {row}", flush=True)
    return row


def main() -> int:
    cores = usable_cores()
    print(f"{cores} cores, {_core.isa()}, torch {torch.__version__}", flush=True)
    rows = {}
    for threads in sorted({1, cores}):
        for inputs, batch, active, asked, rounds in CASES:
            row = measure(inputs, batch, active, asked, rounds, threads)
            rows[f"{inputs}, {batch} rows, {active:.0%}, {threads} threads"] = row
    wide = two_layer(40)
    if wide is not None:
        rows["TwoLayer"] = wide
    missed = [name for name, row in rows.items() if row["ratio"] < row["asked"]]
    worst = min(row["ratio"] / row["asked"] for row in rows.values())
    print(json.dumps({"name": "sparse_block", "ratio": round(worst, 3), "cases": rows, "missed": missed}))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
