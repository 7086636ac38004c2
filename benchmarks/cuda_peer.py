"""The peer of `train_cuda.py`: PyTorch `bmm` over runs, fp32, 50 steps to a CUDA graph.

What a careful PyTorch user would write for many small networks at once: all runs stacked along the first axis, batches
gathered on the device, gradients by hand, updates in place, no launch overhead.
"""

from __future__ import annotations

import statistics

import torch

STEPS = 50
RATE, DECAY, BATCH, EXAMPLES = 0.1, 0.01, 32, 1000


class StackedRuns:
    """`runs` two-layer ReLU networks on (n, 3)-parity data, hinge loss."""

    def __init__(self, n: int, width: int, runs: int) -> None:
        torch.backends.cuda.matmul.allow_tf32 = False
        make = torch.Generator("cuda").manual_seed(1)
        self.X = torch.randint(0, 2, (runs, EXAMPLES, n), device="cuda", generator=make).float() * 2 - 1
        self.y = self.X[:, :, :3].prod(2, keepdim=True)
        self.W = (torch.rand((runs, n, width), device="cuda", generator=make) * 2 - 1) / n**0.5
        self.b = (torch.rand((runs, 1, width), device="cuda", generator=make) * 2 - 1) / n**0.5
        self.u = (torch.rand((runs, width, 1), device="cuda", generator=make) * 2 - 1) / width**0.5
        self.o = torch.zeros((runs, 1, 1), device="cuda")
        self.row = torch.arange(runs, device="cuda")[:, None]

    def step(self) -> None:
        """One update of every run."""
        keep = 1 - RATE * DECAY
        chosen = torch.randint(0, EXAMPLES, (len(self.X), BATCH), device="cuda")
        x, y = self.X[self.row, chosen], self.y[self.row, chosen]
        h = torch.baddbmm(self.b, x, self.W).relu_()
        f = torch.baddbmm(self.o, h, self.u)
        g = torch.where(y * f < 1, -y / BATCH, 0.0)
        through = torch.bmm(g, self.u.transpose(1, 2)) * (h > 0)
        self.u.mul_(keep).baddbmm_(h.transpose(1, 2), g, alpha=-RATE)
        self.W.mul_(keep).baddbmm_(x.transpose(1, 2), through, alpha=-RATE)
        self.b.mul_(keep).sub_(through.sum(1, keepdim=True), alpha=RATE)
        self.o.mul_(keep).sub_(g.sum(1, keepdim=True), alpha=RATE)


def microseconds(n: int, width: int, runs: int, repeats: int = 5) -> float:
    """Per step and run: the median over replays of a captured graph."""
    model = StackedRuns(n, width, runs)
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            model.step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(STEPS):
            model.step()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / (STEPS * runs))
    del graph, model
    torch.cuda.empty_cache()
    return statistics.median(times)


def product_ceiling() -> float:
    """Multiply-adds per second of a large half-precision matrix product, in units of 1e12."""
    a, b = (torch.randn((8192, 8192), device="cuda", dtype=torch.float16) for _ in range(2))
    return 8192**3 / _seconds(lambda: a @ b) / 1e12


def copy_ceiling() -> float:
    """Bytes per second of a large copy, read and written, in units of 1e12."""
    a = torch.empty(1 << 30, device="cuda", dtype=torch.float32)
    b = torch.empty_like(a)
    return 2 * a.nbytes / _seconds(lambda: b.copy_(a)) / 1e12


def _seconds(call: object) -> float:
    times = []
    for _ in range(8):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()  # type: ignore[operator]
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times[3:])
