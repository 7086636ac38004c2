"""Is every block of a sparsified transformer the dense block, within the stated bound, on 100,000 random inputs?

The transformer of `train_lazy_transformer.py` (24 M parameters) is sparsified, with the sparse path forced at every
number of rows, and run on random inputs: half of the sequences are bytes drawn uniformly, which no text looks like, half
start at random places of held-out source files. Every block's output at every position is compared with the dense block
in float64: it has to lie within the bound of docs/sparse-inference-kernel.md, and as many neurons have to fire as in
float64, but for those within rounding of 0. It also has to have the very bits that the kernel gives for that row alone
(every fiftieth row is asked alone, as decoding asks it). Exit 1 where one of them fails.

    python benchmarks/sparse_exactness.py lazy-transformer --inputs 100000 --write
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

import fewfire.torch as ft
from fewfire import _core
from fewfire._atomic import replacing
from fewfire._cores import usable_cores
from fewfire.experiments.lazy_neurons._language import standard_library
from fewfire.experiments.lazy_neurons._weights import load_decoder
from fewfire.torch._kernel import SparseBlock

RESULT = Path(__file__).resolve().parents[1] / "docs" / "results" / "sparse-transformer-exactness.json"
ALONE = 50
"""One row of so many is computed by itself as well."""


def sequences(count: int, length: int, seed: int) -> Any:
    """Tokens of shape (count, length), half of them drawn uniformly, half from held-out files."""
    draw = np.random.default_rng(seed)
    tokens = draw.integers(0, 256, size=(count, length))
    _, held = standard_library()
    text = np.frombuffer(held, dtype=np.uint8)
    for row in range(1, count, 2):
        place = int(draw.integers(0, len(text) - length))
        tokens[row] = text[place : place + length]
    return torch.from_numpy(tokens)


class CheckedBlock:
    """One mlp: its dense twin in float64 and the stated bound, and what was found so far."""

    def __init__(self, mlp: Any) -> None:
        up, down = mlp[0], mlp[2]
        arrays = [np.ascontiguousarray(t.detach().numpy()) for t in (up.weight, up.bias, down.weight.t(), down.bias)]
        self.kernel = SparseBlock(*arrays)
        self.up, self.up_bias, self.down, self.down_bias = (array.astype(np.float64) for array in arrays)
        self.sizes = np.abs(arrays[0]), np.abs(arrays[1]), np.abs(self.down), np.abs(self.down_bias)
        self.rows = self.firing = self.unsure = self.outside = self.other_bits = self.miscounted = 0
        self.largest_share = self.deviation = 0.0

    def check(self, x: Any, y: Any) -> None:
        """Compare the outputs y of the rows x."""
        (width, inputs), unit = self.up.shape, 2.0**-24
        up, up_bias, down, down_bias = self.sizes
        z = x.astype(np.float64) @ self.up.T + self.up_bias
        # These sizes are summed in float32, whose own rounding a thousandth covers.
        depth = inputs // 64 + 8
        error = 1.001 * depth * unit / (1 - depth * unit) * (np.abs(x) @ up.T + up_bias).astype(np.float64)
        unsure = np.abs(z) <= error
        # Few neurons count: those that fire, and those within rounding of 0.
        rows, columns = np.nonzero((z > 0) | unsure)
        value = z[rows, columns]
        spread = np.where(unsure[rows, columns], np.abs(value), 0) + error[rows, columns]
        h, h_error, h_size = (
            csr_array((values, (rows, columns)), shape=z.shape)
            for values in (np.maximum(value, 0), spread, np.maximum(value, 0) + spread)
        )
        depth = width + 40
        bound = h_error @ down + depth * unit / (1 - depth * unit) * (h_size @ down + down_bias)
        away = np.abs(y - (h @ self.down + self.down_bias))
        again, work = self.kernel.counted(x, usable_cores())
        alone = np.concatenate([self.kernel(x[i : i + 1]) for i in range(0, len(x), ALONE)])
        self.other_bits += int((again != y).any(axis=1).sum() + (alone != y[::ALONE]).any(axis=1).sum())
        sure = int((z > error).sum())
        self.miscounted += not sure <= work.firing <= sure + int(unsure.sum())
        self.rows += len(x)
        self.firing, self.unsure = self.firing + work.firing, self.unsure + int(unsure.sum())
        self.outside += int((away > bound).sum())
        self.largest_share = max(self.largest_share, float((away / bound).max()))
        self.deviation = max(self.deviation, float(away.max()))

    def summary(self) -> dict[str, Any]:
        """What was found, as plain data."""
        return {
            "rows": self.rows,
            "activity": round(self.firing / (self.rows * len(self.up)), 4),
            "within_rounding_of_0": self.unsure,
            "outputs_outside_the_bound": self.outside,
            "rows_with_other_bits": self.other_bits,
            "batches_with_other_counts": self.miscounted,
            "largest_deviation": float(f"{self.deviation:.2e}"),
            "largest_share_of_the_bound": float(f"{self.largest_share:.2e}"),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="folder that train_lazy_transformer.py wrote")
    parser.add_argument("--inputs", type=int, default=100_000, help="positions sent through the model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="put what was found into docs/results")
    given = parser.parse_args()
    torch.set_num_threads(usable_cores())
    model, _ = load_decoder(given.weights)
    length = model.shape.context // 2
    tokens = sequences(-(-given.inputs // length), length, given.seed)
    blocks = [CheckedBlock(block.mlp) for block in model.blocks]
    ft.sparsify(model, [tokens[:1]], dense_above=sys.maxsize)
    for block, checked in zip(model.blocks, blocks, strict=True):
        # Outside of the block: what it is given and what it gives.
        block.mlp.register_forward_hook(
            lambda _module, args, out, checked=checked: checked.check(args[0][0].numpy(), out[0].numpy())
        )
    start, told = time.perf_counter(), 0
    with torch.inference_mode():
        for done, row in enumerate(tokens, 1):
            model(row[None])
            if done * 10 // len(tokens) > told:
                told = done * 10 // len(tokens)
                print(f"{done * length:,} inputs, {time.perf_counter() - start:.0f} s", flush=True)
    layers = [checked.summary() for checked in blocks]
    keys = ("outputs_outside_the_bound", "rows_with_other_bits", "batches_with_other_counts")
    missed = [key for key in keys if any(layer[key] for layer in layers)]
    facts = {"inputs": tokens.numel(), "seed": given.seed, "parameters": model.shape.parameters}
    found = {"name": "sparse_exactness", **facts, "isa": _core.isa(), "layers": layers, "missed": missed}
    if given.write:
        with replacing(RESULT) as file:
            file.write((json.dumps(found, indent=1) + "\n").encode())
    print(json.dumps(found))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
