"""When does a sparse path pay? Rows, activity, width and threads, losses included; the table of docs/sparse-inference.md.

A model of blocks with Gaussian weights is run on Gaussian rows, block after block, so that neither side lives in the
cache; the bias gives the stated activity. The ratio is dense time (torch.nn, eager) over the time of the same model with
the sparse path forced, both called as a user calls them, in turn, best of the rounds. Below 1 the sparse path loses, and
`sparsify` without `dense_above` chooses the dense one. The largest deviation from float64 of either side is printed.

    python benchmarks/sparse_map.py                # prints the table
    python benchmarks/sparse_map.py --write        # and puts it into docs/sparse-inference.md
"""

from __future__ import annotations

import argparse
import copy
import re
import statistics
import sys
import time
from pathlib import Path

import torch

import fewfire.torch as ft

PAGE = Path(__file__).resolve().parents[1] / "docs" / "sparse-inference.md"
SHAPES = ((1024, 4096, False), (4096, 16384, False), (2048, 5632, True))
ACTIVITIES = (0.01, 0.03, 0.1, 0.3)
ROWS = (1, 4, 16, 64)
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


def best(models: tuple[torch.nn.Module, ...], x: torch.Tensor, seconds: float) -> list[float]:
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
    x = torch.randn(max(ROWS), inputs)
    ratios = []
    for count in threads:
        torch.set_num_threads(count)
        for rows in ROWS:
            slow, fast = best((dense, sparse), x[:rows].contiguous(), seconds)
            ratios.append(slow / fast)
    exact = copy.deepcopy(dense).double()(x.double())
    deviations = [float((model(x).double() - exact).abs().max()) for model in (dense, sparse)]
    name = f"{inputs} → {width}{', gated' if gated else ''}"
    cells = [f"{ratio:.1f}" if ratio >= 1 else f"*{ratio:.2f}*" for ratio in ratios]
    return f"| {name} | {activity:.0%} | {' | '.join(cells)} |", deviations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--shapes", type=int, nargs="+", default=list(range(len(SHAPES))), help="their places")
    parser.add_argument("--seconds", type=float, default=2.0, help="per measurement")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    arguments = parser.parse_args()
    heads = [f"{rows} row{'s' if rows > 1 else ''}, {t} thr." for t in arguments.threads for rows in ROWS]
    table = [f"| block | fire | {' | '.join(heads)} |", "| --- | ---: |" + " ---: |" * len(heads)]
    print("\n".join(table))
    with torch.inference_mode():
        for place in arguments.shapes:
            for activity in ACTIVITIES:
                text, (dense, sparse) = line(SHAPES[place], activity, arguments.threads, arguments.seconds)
                table.append(text)
                print(f"{text}  deviation: dense {dense:.1e}, sparse {sparse:.1e}", flush=True)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        filled = re.sub(
            r"(?s)(<!-- map -->\n).*?(<!-- /map -->)", lambda m: m[1] + "\n".join(table) + "\n" + m[2], page
        )
        PAGE.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
