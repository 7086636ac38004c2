"""What does it cost a sparse block, at every call, to see that its modules were not changed?

`fewfire.torch` compares the modules that a sparse forward stands for with those present (`_watch.py`). The time of that
comparison alone, by itself in a loop, the best of many rounds: blocks of three, four and five modules that are computed
at once, and the first layer of a block that is inlined in a transformer layer. For comparison the whole sparse call of a
block so small that overhead is all it has. First, each block has to agree with its dense copy, and to notice an adapter.
Asked: under 1 µs for each. One thread.

    python benchmarks/sparse_watch.py
"""

from __future__ import annotations

import copy
import json
import sys
import timeit
from typing import Any

import torch

import fewfire.torch as ft

nn = torch.nn
INPUTS, WIDTH, ASKED = 32, 128, 1.0


class Gated(nn.Module):
    """As in Llama: three layers and an activation, with attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.config, self.hidden_size, self.intermediate_size = object(), INPUTS, WIDTH
        self.gate_proj, self.up_proj = nn.Linear(INPUTS, WIDTH, bias=False), nn.Linear(INPUTS, WIDTH, bias=False)
        self.down_proj, self.act_fn = nn.Linear(WIDTH, INPUTS, bias=False), nn.ReLU()

    def forward(self, x: Any) -> Any:
        """a(g)·z, and down."""
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Dropped(nn.Module):
    """As in T5: two layers, an activation and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.wi, self.wo = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, INPUTS)
        self.act, self.dropout = nn.ReLU(), nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        """a(z), and down."""
        return self.wo(self.dropout(self.act(self.wi(x))))


class Inlined(nn.Module):
    """As in OPT: the block is written out in a larger forward."""

    def __init__(self) -> None:
        super().__init__()
        self.embed_dim, self.activation_fn, self.norm = INPUTS, nn.ReLU(), nn.LayerNorm(INPUTS)
        self.fc1, self.fc2 = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, INPUTS)

    def forward(self, x: Any) -> Any:
        """x + down(a(z))."""
        return x + self.fc2(self.activation_fn(self.fc1(self.norm(x))))


def models() -> dict[str, tuple[Any, str]]:
    """Blocks, each with the name of its first layer."""
    plain = nn.Sequential(nn.Linear(INPUTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, INPUTS))
    return {
        "Sequential": (plain, "0"),
        "T5": (Dropped(), "wi"),
        "Llama": (Gated(), "gate_proj"),
        "OPT": (Inlined(), "fc1"),
    }


def watch_of(sparse: Any) -> Any:
    """What the first sparse forward of a model asks at every call."""
    forward = next(vars(module)["forward"] for module in sparse.modules() if "forward" in vars(module))
    parts = vars(forward).get("parts")
    return (parts[0] if parts else forward).watch


def check(sparse: Any, dense: Any, name: str, x: Any) -> None:
    """Stop where a sparse model is not its dense copy, before an adapter is added or after."""
    torch.testing.assert_close(sparse(x), dense(x))
    for model in (sparse, dense):
        torch.manual_seed(1)
        owner, layer = model, getattr(model, name)
        adapter = nn.Sequential(nn.Linear(INPUTS, 4), nn.Linear(4, WIDTH))
        wrapped = type("Adapted", (nn.Module,), {"forward": lambda self, x: self.base(x) + self.adapter(x)})()
        wrapped.base, wrapped.adapter = layer, adapter
        setattr(owner, name, wrapped)
    torch.testing.assert_close(sparse(x), dense(x))
    for model in (sparse, dense):
        setattr(model, name, getattr(model, name).base)


def best(call: Any, number: int) -> float:
    """Microseconds of one call."""
    return 1e6 * min(timeit.repeat(call, number=number, repeat=400)) / number


def main() -> int:
    """Measure, print, and return whether what was asked for is missed."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = {}
    with torch.inference_mode(False), torch.no_grad():
        for label, (model, name) in models().items():
            dense, x = model.eval(), torch.randn(1, INPUTS)
            sparse = copy.deepcopy(dense)
            ft.sparsify(sparse, [torch.randn(40, INPUTS)], dense_above=64)
            check(sparse, dense, name, x)
            watch = watch_of(sparse)
            assert watch.holds()
            rows[label] = (best(watch.holds, 500), best(lambda sparse=sparse, x=x: sparse(x), 20))
            print(f"{label:12} {rows[label][0]:.2f} µs of {rows[label][1]:.1f} µs per call", flush=True)
    largest = max(cost for cost, _ in rows.values())
    result = {
        "name": "sparse_watch",
        "ratio": round(ASKED / largest, 3),
        "microseconds": {label: round(cost, 3) for label, (cost, _) in rows.items()},
        "call_microseconds": {label: round(call, 2) for label, (_, call) in rows.items()},
        "asked_microseconds": ASKED,
        "threads": 1,
    }
    print(json.dumps(result))
    return 0 if largest < ASKED else 1


if __name__ == "__main__":
    sys.exit(main())
