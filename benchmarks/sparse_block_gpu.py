"""Does an exact sparse block beat the dense one on a GPU?

Batch 1, half precision (bfloat16), both sides in CUDA graphs of ten calls that rotate over several blocks, so that no
weights stay in the cache; dense is the faster of `torch.nn` and `torch.compile`. Neurons fire unevenly, as in trained
networks (log-normal shares), 3% or 10% in the mean. Correctness first: every neuron that fires in float64, outside a
band of rounding, is found, and outputs deviate from float64 no more than dense's.

    python benchmarks/sparse_block_gpu.py
"""

from __future__ import annotations

import json
import sys
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from fewfire.torch.cuda import DeviceBlock

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS, REPLAYS, CALLS = 7, 20, 12


class Case(NamedTuple):
    """A block, the share of its neurons that fire, and the ratio asked for."""

    inputs: int
    width: int
    gated: bool
    active: float
    asked: float

    @property
    def label(self) -> str:
        """What the table calls it."""
        return f"{'gated ' if self.gated else ''}{self.inputs} → {self.width}, {self.active:.0%}"


CASES = (
    Case(4096, 16384, False, 0.03, 2.2),
    Case(8192, 28672, False, 0.03, 2.4),
    Case(4096, 14336, True, 0.03, 2.8),
    Case(4096, 16384, False, 0.10, 0.95),
    Case(8192, 28672, False, 0.10, 0.95),
    Case(4096, 14336, True, 0.10, 0.95),
)


class Dense(torch.nn.Module):
    """The block as people write it."""

    def __init__(self, case: Case, seed: int) -> None:
        super().__init__()
        generator = torch.Generator("cuda").manual_seed(seed)
        draw = lambda *shape: torch.randn(*shape, device="cuda", generator=generator)  # noqa: E731
        width, inputs = case.width, case.inputs
        share = (case.active * torch.exp(1.2 * draw(width) - 0.72)).clamp(1e-5, 0.9)
        self.first = torch.nn.Parameter((draw(width, inputs) / inputs**0.5).bfloat16())
        self.bias = torch.nn.Parameter((-torch.special.ndtri(1 - share.double())).bfloat16())
        self.factor = torch.nn.Parameter((draw(width, inputs) / inputs**0.5).bfloat16()) if case.gated else None
        self.second = torch.nn.Parameter((draw(inputs, width) / width**0.5).bfloat16())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs for inputs of shape (batch, inputs)."""
        value = torch.relu(torch.nn.functional.linear(x, self.first, self.bias))
        if self.factor is not None:
            value = value * torch.nn.functional.linear(x, self.factor)
        return torch.nn.functional.linear(value, self.second)

    def exact(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs and scores in float64."""
        score = x.double() @ self.first.double().T + self.bias.double()
        value = torch.relu(score)
        if self.factor is not None:
            value = value * (x.double() @ self.factor.double().T)
        return value @ self.second.double().T, score


def sparse(block: Dense) -> DeviceBlock:
    gated = None if block.factor is None else "reglu"
    second = block.second.detach().t().contiguous()
    return DeviceBlock(block.first.detach(), block.bias, second, None, factor=block.factor, gated=gated)


def graphed(calls: list[Callable[[], Any]]) -> torch.cuda.CUDAGraph:
    for call in calls:
        call()
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for call in calls:
            call()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for number in range(CALLS):
            calls[number % len(calls)]()
    return graph


def microseconds(graphs: list[torch.cuda.CUDAGraph]) -> list[float]:
    """Per call, median over repeats, the graphs in turn."""
    times: list[list[float]] = [[] for _ in graphs]
    for _ in range(REPEATS):
        for graph, kept in zip(graphs, times, strict=True):
            graph.replay()
            begun, done = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begun.record()
            for _ in range(REPLAYS):
                graph.replay()
            done.record()
            torch.cuda.synchronize()
            kept.append(1e3 * begun.elapsed_time(done) / (REPLAYS * CALLS))
    return [median(kept) for kept in times]


def check(dense: Dense, block: DeviceBlock, x: torch.Tensor) -> tuple[float, float, float]:
    """Deviations from float64 (sparse, dense) and the share that fires."""
    y, (exact, score) = block(x), dense.exact(x)
    sure = int((score > 1e-5).sum())
    found = block.listed(x)
    assert sure <= found <= int((score > -1e-5).sum()), f"{found} neurons were found where {sure} fire"
    assert torch.equal(y, block(x)), "the same input gave other bits"
    largest = float(exact.abs().max())
    deviation, rival = (float((out.double() - exact).abs().max()) / largest for out in (y, dense(x)))
    return deviation, rival, found / len(score[0])


@torch.inference_mode()
def measure(case: Case) -> dict[str, float]:
    blocks = [Dense(case, seed) for seed in range(3)]
    x = torch.randn(1, case.inputs, device="cuda", generator=torch.Generator("cuda").manual_seed(9)).bfloat16()
    fewer = [sparse(block) for block in blocks]
    checked = [check(*pair, x) for pair in zip(blocks, fewer, strict=True)]
    rivals = {"eager": [lambda block=block: block(x) for block in blocks]}
    try:
        fused = [torch.compile(block) for block in blocks]
        fused[0](x)
        rivals["compile"] = [lambda block=block: block(x) for block in fused]
    except Exception as error:  # no compiler on this machine: report it, eager stands
        print(f"torch.compile: {type(error).__name__}", flush=True)
    graphs = [graphed(calls) for calls in (*rivals.values(), [lambda block=block: block(x) for block in fewer])]
    *dense, ours = microseconds(graphs)
    worst = [max(values) for values in zip(*checked, strict=True)]
    return {
        "dense_us": round(min(dense), 2),
        "sparse_us": round(ours, 2),
        "ratio": round(min(dense) / ours, 3),
        "asked": case.asked,
        "deviation": worst[0],
        "dense_deviation": worst[1],
        "fires": round(worst[2], 4),
        "extra_bytes": fewer[0].extra_bytes,
    }


def main() -> int:
    figures = {}
    for case in CASES:
        figures[case.label] = found = measure(case)
        print(f"{case.label}: {found}", flush=True)
    missed = [
        label
        for label, found in figures.items()
        if found["ratio"] < found["asked"] or found["deviation"] > found["dense_deviation"]
    ]
    worst = min(found["ratio"] / found["asked"] for found in figures.values())
    device = torch.cuda.get_device_name()
    print(json.dumps({"name": "sparse_block_gpu", "ratio": round(worst, 3), "device": device, "figures": figures}))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
