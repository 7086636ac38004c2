"""Does it pay to train a block on the neurons that fire alone, exactly?

A step of plain SGD on Linear → ReLU → Linear (1024 → 4096 → 1024): forward, gradients of both layers and of the input,
update. Peer: PyTorch with autograd and `torch.optim.SGD`, its loop and its fused form, whichever is faster, on the same
threads. `fewfire.torch.SparseTrainingBlock` finds the firing neurons by the screen, computes gradients of their rows,
moves those, and makes their codes anew, which is counted. Both take turns on blocks that are together four times the
third-level cache; rows are new in every round, and neurons fire with log-normal probabilities of the stated mean, as in
`sparse_block.py`. Correctness first: after the same steps both are compared with float64. Nothing is asked: ratios are
what the docs quote, and "rows" says how many rows of the weights a step touches.

    python benchmarks/sparse_training.py [--threads N]
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

import fewfire.torch as ft
from fewfire import _core
from fewfire._cores import usable_cores
from sparse_block import LEAST_BYTES, make_block

if TYPE_CHECKING:
    from collections.abc import Callable

INPUTS, RATE = 1024, 1e-3
ACTIVITIES, BATCHES = (0.03, 0.10, 0.30), (1, 4, 16, 64)


def dense_step(block: Any, **options: Any) -> Callable[[Any, Any], None]:
    """A step as a user of PyTorch writes it."""
    optimiser = torch.optim.SGD(block.parameters(), lr=RATE, **options)

    def step(x: Any, g: Any) -> None:
        block(x.requires_grad_()).backward(g)
        optimiser.step()
        optimiser.zero_grad()

    return step


def sparse_step(block: Any, threads: int) -> Callable[[Any, Any], None]:
    """The same on the neurons that fire; the layers of `block` are changed."""
    trained = ft.SparseTrainingBlock(block[0], block[2], learning_rate=RATE, threads=threads)

    def step(x: Any, g: Any) -> None:
        trained(x.requires_grad_()).backward(g)

    return step


def deviations(start: Any, batch: int, threads: int) -> dict[str, float]:
    """How far the weights of both are from those of float64 after the same ten steps."""
    dense, sparse, wide = copy.deepcopy(start), copy.deepcopy(start), copy.deepcopy(start).double()
    steps = dense_step(dense), sparse_step(sparse, threads), dense_step(wide)
    for _ in range(10):
        x, g = torch.randn(batch, INPUTS), torch.randn(batch, INPUTS)
        for step, kind in zip(steps, (torch.float32, torch.float32, torch.float64), strict=True):
            step(x.to(kind, copy=True), g.to(kind))
    away = {
        name: max(
            float((ours.detach().double() - theirs.detach()).abs().max())
            for ours, theirs in zip(block.parameters(), wide.parameters(), strict=True)
        )
        for name, block in (("dense", dense), ("sparse", sparse))
    }
    assert away["sparse"] <= 4 * away["dense"] + 1e-6, f"training differs from float64: {away}"
    return away


def measure(active: float, batch: int, threads: int) -> dict[str, Any]:
    count = -(-LEAST_BYTES // (2 * 4 * INPUTS * 4 * INPUTS))
    starts = [make_block(INPUTS, active, seed).train() for seed in range(count)]
    away = deviations(starts[0], batch, threads)
    sides: dict[str, list[Callable[[Any, Any], None]]] = {
        "loop": [dense_step(block) for block in copy.deepcopy(starts)],
        "fused": [dense_step(block, fused=True) for block in copy.deepcopy(starts)],
        "sparse": [sparse_step(block, threads) for block in copy.deepcopy(starts)],
    }
    taken: dict[str, list[float]] = {name: [] for name in sides}
    touched = []
    for round_ in range(7 if batch < 64 else 5):
        x, g = torch.randn(batch, INPUTS), torch.randn(batch, INPUTS)
        with torch.no_grad():
            touched += [float((block[0](x) > 0).any(0).float().mean()) for block in starts[:1]]
        for name, steps in sides.items():
            for step in steps:
                own = x.clone()
                begin = time.perf_counter()
                step(own, g)
                if round_ > 0:
                    taken[name].append(time.perf_counter() - begin)
    ratios = {
        kind: min(figure(taken["loop"]), figure(taken["fused"])) / figure(taken["sparse"])
        for kind, figure in (("median", statistics.median), ("best", min))
    }
    row = {
        "ratio": round(min(ratios.values()), 2),
        "rows": round(statistics.mean(touched), 3),
        **{kind: round(ratio, 2) for kind, ratio in ratios.items()},
        "ms": {name: round(1e3 * statistics.median(times), 2) for name, times in taken.items()},
        "deviation": {name: float(f"{value:.1e}") for name, value in away.items()},
    }
    print(f"{active:.0%} fire, {batch} rows, {threads} threads: {row}", flush=True)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=usable_cores())
    threads = parser.parse_args().threads
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    print(f"{threads} threads, {_core.isa()}, torch {torch.__version__}", flush=True)
    rows = {
        f"{active:.0%}, {batch} rows": measure(active, batch, threads) for active in ACTIVITIES for batch in BATCHES
    }
    worst = min(row["ratio"] for row in rows.values())
    print(json.dumps({"name": "sparse_training", "ratio": worst, "threads": threads, "cases": rows, "missed": []}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
