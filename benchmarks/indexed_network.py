"""How fast is one query of a wide network whose neurons stand in an index, against its dense forward?

A ReLU network of 100,000 neurons on 256 inputs, biases such that 1% of them fire, one output. `TwoLayer.indexed()`
reads int8 codes of all neurons (a quarter of the bytes, so four times is the most to be had), float32 weights of those
the codes leave open or that fire, and no more. Rivals: the network itself (NumPy) and the same in PyTorch, where it is
there, on the same threads; the faster one counts. Several networks take turns, so that no side finds its weights in
cache; of the ratios of medians and of best times the smaller one counts. Correctness first: every neuron whose
preactivation in float64 is beyond rounding of 0 fires or does not as it should, and the largest deviation from float64
of both sides is printed. Asked: 3 times.

    python benchmarks/indexed_network.py
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from fewfire import _core
from fewfire._cores import usable_cores
from fewfire.networks import TwoLayer

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH, INPUTS, ACTIVITY, ASKED = 100_000, 256, 0.01, 3.0
NETWORKS, ROUNDS = 3, 25
DRAW = np.random.default_rng(0)


def network() -> TwoLayer:
    """Unit normal weights; one bias for all, such that the stated share of neurons fires on unit normal inputs."""
    hidden = DRAW.standard_normal((WIDTH, INPUTS), dtype=np.float32)
    sample = DRAW.standard_normal((64, INPUTS), dtype=np.float32) @ hidden[:10_000].T
    bias = np.full(WIDTH, -np.quantile(sample, 1 - ACTIVITY), dtype=np.float32)
    return TwoLayer(hidden, bias, DRAW.standard_normal(WIDTH) / np.sqrt(WIDTH))


def check(plain: TwoLayer, indexed: TwoLayer, rows: Any) -> dict[str, float]:
    """Deviations from float64, the share of neurons that fire, and how many of them were decided by rounding."""
    wide = plain.astype(np.float64)
    z = wide.preactivations(rows)
    sizes = np.abs(rows) @ np.abs(plain.hidden).T + np.abs(plain.bias)
    fires = indexed.active(rows).to_scipy().toarray()
    open_ = np.abs(z) <= (INPUTS + 1) * 2.0**-24 * sizes
    assert ((fires == (z > 0)) | open_).all(), "a neuron that fires was missed, or one that does not was found"
    exact = wide(rows)
    return {
        "activity": float(fires.mean()),
        "within_rounding": int(open_.sum()),
        "deviation_indexed": float(np.abs(indexed(rows) - exact).max()),
        "deviation_dense": float(np.abs(plain(rows) - exact).max()),
    }


def torch_forward(plain: TwoLayer) -> Callable[[Any], Any]:
    """The same network as PyTorch evaluates it."""
    first, second = torch.nn.Linear(INPUTS, WIDTH), torch.nn.Linear(WIDTH, 1)
    with torch.no_grad():
        first.weight.copy_(torch.tensor(plain.hidden))
        first.bias.copy_(torch.tensor(plain.bias))
        second.weight.copy_(torch.tensor(plain.output)[None])
        second.bias.zero_()
    model = torch.nn.Sequential(first, torch.nn.ReLU(), second).eval()

    def forward(row: Any) -> Any:
        with torch.inference_mode():
            return model(torch.from_numpy(row))

    return forward


def main() -> int:
    threads = usable_cores()
    if torch is not None:
        torch.set_num_threads(threads)
    rows = DRAW.standard_normal((ROUNDS, INPUTS), dtype=np.float32)
    plains = [network() for _ in range(NETWORKS)]
    indexes = [plain.indexed(threads=threads) for plain in plains]
    checked = check(plains[0], indexes[0], rows[:4])
    for indexed in indexes:
        indexed(rows[:1])  # chooses the method
    print(f"{threads} threads, {_core.isa()}; {checked}")
    print(indexes[0].index.plan)
    sides: dict[str, list[Callable[[Any], Any]]] = {"indexed": list(indexes), "numpy": list(plains)}
    if torch is not None:
        sides["torch"] = [torch_forward(plain) for plain in plains]
    taken: dict[str, list[float]] = {side: [] for side in sides}
    with threadpool_limits(threads, "blas"):
        for i in range(ROUNDS):
            for side, forwards in sides.items():
                for forward in forwards:
                    start = time.perf_counter()
                    forward(rows[i : i + 1])
                    taken[side].append(time.perf_counter() - start)
    ratios, ms = {}, {}
    for name, figure in (("median", statistics.median), ("best", min)):
        ms[name] = {side: round(1e3 * figure(times), 3) for side, times in taken.items()}
        ratios[name] = min(t for side, t in ms[name].items() if side != "indexed") / ms[name]["indexed"]
    ratio = min(ratios.values())
    missed = [] if ratio >= ASKED else ["one query"]
    summary = {"name": "indexed_network", "ratio": round(ratio, 2), "asked": ASKED}
    print(json.dumps({**summary, "ms": ms, **checked, "missed": missed}))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
