"""Train the ReLU transformer that `sparse_transformer.py` decodes with: 24 M parameters, some minutes on a GPU.

Byte by byte on the source of the running Python's standard library, from scratch, with nothing that would make it
sparse, unless --target is given. Prints held-out loss and the activity of every layer as they fall; writes bfloat16
weights in shards of at most 15 MiB, and the curve. Without a GPU it takes hours: then try --steps 20.

    python benchmarks/train_lazy_transformer.py --out lazy-transformer
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path

import torch

import fewfire.torch as ft
from fewfire.experiments.lazy_neurons._decoder import DecoderShape, decode
from fewfire.experiments.lazy_neurons._language import LanguageTraining, train_decoder
from fewfire.experiments.lazy_neurons._weights import load_decoder, save_decoder

SHAPE = DecoderShape(model=512, width=4096, layers=5, heads=8, context=512)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the weights")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", type=float, help="hold activity down to this share (fewfire.torch.ActivityPenalty)")
    parser.add_argument("--compile", action="store_true", help="steps through torch.compile, unless there is a target")
    parser.add_argument("--seconds", type=float, default=200.0, help="fewer steps where they would take longer")
    given = parser.parse_args()
    print(f"{SHAPE}: {SHAPE.parameters:,} parameters", flush=True)
    torch.set_float32_matmul_precision("high")
    compiled = given.compile and given.target is None
    penalty = None if given.target is None else partial(ft.ActivityPenalty, target=given.target)
    train = partial(train_decoder, SHAPE, seed=given.seed, compiled=compiled, penalty=penalty)
    trial = LanguageTraining(8, given.batch, given.rate, checkpoints=2, windows=8)
    per_step = min(train(trial).seconds for _ in range(2)) / trial.steps  # the first one starts the device as well
    steps = min(given.steps, max(1, int(given.seconds / per_step)))
    print(f"{1e3 * per_step:.1f} ms per step, {steps} steps", flush=True)
    training = LanguageTraining(steps, given.batch, given.rate, checkpoints=14, windows=64)
    trained = train(training, verbose=True)
    files = save_decoder(trained, given.out)
    model, facts = load_decoder(given.out)
    print((b"def main(" + decode(model, b"def main(", 150)[0]).decode(errors="replace"))
    sizes = {path.name: path.stat().st_size for path in files}
    last = facts["curve"][-1]
    print(json.dumps({"name": "train_lazy_transformer", "seconds": round(trained.seconds, 1), **last, "bytes": sizes}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
