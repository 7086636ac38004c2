"""How much faster is a block of two layers when only the neurons that fire are computed, exactly?

`fewfire.torch.sparsify` against the same PyTorch block computed densely, by `torch.nn` and by `torch.compile`, whichever
is faster, on the same threads, in turn. Neurons fire with log-normal probabilities (spread 1) of the stated mean, as in
trained transformers few do often and most do rarely; the blocks of a round are more than four times the third-level
cache together, so no side finds its weights there. Asked, with every core: 4 times (1024 → 4096 → 1024, 3% active, one
row), 1.5 times (16 rows), 4.2 times (4096 → 16384 → 4096, one row); 0.95 times at 30%, where the dense path has to be
chosen. With one thread the same is printed. Largest deviations from float64 of both sides are printed as well.

    python benchmarks/sparse_block.py
    python benchmarks/sparse_block.py map [--write]            # the table of docs/sparse-inference.md
    python benchmarks/sparse_block.py training [--threads N]

`map`: rows, activity, width and threads, losses included. A model of blocks with Gaussian weights is run on Gaussian
rows, block after block; the bias gives the stated activity. The ratio is dense time (torch.nn, eager) over the time of
the same model with the sparse path forced, both called as a user calls them, in turn, best of the rounds. Nothing is
asked: below 1 the sparse path loses, and `sparsify` without `dense_above` chooses the dense one.

`training`: a step of plain SGD on 1024 → 4096 → 1024: forward, gradients of both layers and of the input, update, by
`fewfire.torch.SparseTrainingBlock` on the rows of firing neurons alone, and by PyTorch with autograd and
`torch.optim.SGD`, its loop and its fused form, whichever is faster. Correctness first: after the same steps both are
compared with float64. Nothing is asked; "rows" is the share of the weights' rows that a step touches.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import fewfire.torch as ft

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
    """Linear → ReLU → Linear of four times the inputs, whose neurons fire on normal inputs as the header describes."""
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


def speed() -> int:
    """Blocks against the faster of eager and compiled."""
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, torch {torch.__version__}", flush=True)
    rows = {}
    for threads in sorted({1, cores}):
        for inputs, batch, active, asked, rounds in CASES:
            row = measure(inputs, batch, active, asked, rounds, threads)
            rows[f"{inputs}, {batch} rows, {active:.0%}, {threads} threads"] = row
    missed = [name for name, row in rows.items() if row["ratio"] < row["asked"]]
    worst = min(row["ratio"] / row["asked"] for row in rows.values())
    print(json.dumps({"name": "sparse_block", "ratio": round(worst, 3), "cases": rows, "missed": missed}))
    return bool(missed)


PAGE = Path(__file__).resolve().parents[1] / "docs" / "sparse-inference.md"
SHAPES = ((1024, 4096, False), (4096, 16384, False), (2048, 5632, True))
MAP_ACTIVITIES = (0.01, 0.03, 0.1, 0.3)
MAP_ROWS = (1, 4, 16, 64)
WEIGHTS = 120e6  # bytes that are walked through: more than caches hold


class Mlp(torch.nn.Module):
    """Linear, ReLU, Linear; or gated."""

    def __init__(self, inputs: int, width: int, gated: bool, activity: float) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(inputs, width) if gated else None
        self.up, self.down = torch.nn.Linear(inputs, width), torch.nn.Linear(width, inputs)
        first = self.gate or self.up
        torch.nn.init.normal_(first.weight, std=inputs**-0.5)
        torch.nn.init.constant_(first.bias, statistics.NormalDist().inv_cdf(activity))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block."""
        z = self.up(x)
        return self.down(torch.relu(z) if self.gate is None else torch.relu(self.gate(x)) * z)


class Blocks(torch.nn.Module):
    """The same rows through every block, so that all see the stated activity."""

    def __init__(self, inputs: int, width: int, gated: bool, activity: float) -> None:
        super().__init__()
        count = max(2, round(WEIGHTS / (4 * inputs * width * (3 if gated else 2))))
        self.blocks = torch.nn.ModuleList(Mlp(inputs, width, gated, activity) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Every block's output."""
        return torch.stack([block(x) for block in self.blocks])


def best_of(models: tuple[torch.nn.Module, ...], x: torch.Tensor, seconds: float) -> list[float]:
    times, rounds, start = [float("inf")] * len(models), 0, time.perf_counter()
    while rounds < 3 or (rounds < 40 and time.perf_counter() - start < seconds):
        for place, model in enumerate(models):
            begin = time.perf_counter()
            model(x)
            times[place] = min(times[place], time.perf_counter() - begin)
        rounds += 1
    return times


def line(shape: tuple[int, int, bool], activity: float, threads: list[int], seconds: float) -> tuple[str, list[float]]:
    torch.manual_seed(0)
    inputs, width, gated = shape
    dense = Blocks(*shape, activity).eval()
    sparse = copy.deepcopy(dense)
    ft.sparsify(sparse, [torch.randn(8, inputs)], dense_above=sys.maxsize)
    x = torch.randn(max(MAP_ROWS), inputs)
    ratios = []
    for count in threads:
        torch.set_num_threads(count)
        for rows in MAP_ROWS:
            slow, fast = best_of((dense, sparse), x[:rows].contiguous(), seconds)
            ratios.append(slow / fast)
    exact = copy.deepcopy(dense).double()(x.double())
    deviations = [float((model(x).double() - exact).abs().max()) for model in (dense, sparse)]
    name = f"{inputs} → {width}{', gated' if gated else ''}"
    cells = [f"{ratio:.1f}" if ratio >= 1 else f"*{ratio:.2f}*" for ratio in ratios]
    return f"| {name} | {activity:.0%} | {' | '.join(cells)} |", deviations


def draw_map(arguments: argparse.Namespace) -> int:
    """The table of the page."""
    heads = [
        f"{rows} row{'s' if rows > 1 else ''}, {t} thr." for t in (arguments.threads or [1, 2]) for rows in MAP_ROWS
    ]
    table = [f"| block | fire | {' | '.join(heads)} |", "| --- | ---: |" + " ---: |" * len(heads)]
    print("\n".join(table))
    with torch.inference_mode():
        for place in arguments.shapes:
            for activity in MAP_ACTIVITIES:
                text, (dense, sparse) = line(SHAPES[place], activity, (arguments.threads or [1, 2]), arguments.seconds)
                table.append(text)
                print(f"{text}  deviation: dense {dense:.1e}, sparse {sparse:.1e}", flush=True)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        filled = re.sub(
            r"(?s)(<!-- map -->\n).*?(<!-- /map -->)", lambda m: m[1] + "\n".join(table) + "\n" + m[2], page
        )
        PAGE.write_text(filled, encoding="utf-8")
    print(json.dumps({"name": "sparse_block map", "ratio": None, "rows": len(table) - 2}))
    return 0


INPUTS, RATE = 1024, 1e-3
STEP_ACTIVITIES, STEP_BATCHES = (0.03, 0.10, 0.30), (1, 4, 16, 64)


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


def measure_steps(active: float, batch: int, threads: int) -> dict[str, Any]:
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


def training(threads: int) -> int:
    """Steps on the neurons that fire against dense steps."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    print(f"{threads} threads, torch {torch.__version__}", flush=True)
    rows = {
        f"{active:.0%}, {batch} rows": measure_steps(active, batch, threads)
        for active in STEP_ACTIVITIES
        for batch in STEP_BATCHES
    }
    worst = min(row["ratio"] for row in rows.values())
    print(
        json.dumps({"name": "sparse_block training", "ratio": worst, "threads": threads, "cases": rows, "missed": []})
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="speed", choices=("speed", "map", "training"))
    parser.add_argument("--threads", type=int, nargs="+", help="of map, 1 and 2 unless given; of training, all cores")
    parser.add_argument("--shapes", type=int, nargs="+", default=list(range(len(SHAPES))), help="of map: their places")
    parser.add_argument("--seconds", type=float, default=2.0, help="of map: per measurement")
    parser.add_argument("--write", action="store_true", help="of map: put the table into the page")
    arguments = parser.parse_args()
    if arguments.what == "map":
        return draw_map(arguments)
    if arguments.what == "training":
        return training(arguments.threads[0] if arguments.threads else len(os.sched_getaffinity(0)))
    return speed()


if __name__ == "__main__":
    sys.exit(main())
