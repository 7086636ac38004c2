"""How many tokens per second does a ReLU transformer gain when its blocks compute only what fires?

Greedy decoding with a cache of keys and values, one sequence, the whole model on all cores: the transformer that
`--train` trains (24 M parameters, nothing in it asks for sparsity) as PyTorch runs it, eager and with
its blocks through `torch.compile` (the faster one counts), and after `fewfire.torch.sparsify`. All take turns, prompt by
prompt, and decode source files that were not trained on. Correctness first: both decode the same bytes, except where the two best
logits of the dense model are closer than the two models may differ (twice the largest deviation of any logit, measured
on the same tokens); from such a place on, texts may part. Asked: 1.5 times the tokens per second.

    python benchmarks/sparse_transformer.py lazy-transformer --train    # once, some minutes on a GPU
    python benchmarks/sparse_transformer.py lazy-transformer

The training is byte by byte on the source of the running Python's standard library, from scratch, unless --target is
given with nothing that would make it sparse. It prints validation loss and the activity of every layer as they fall, and
writes bfloat16 weights in shards of at most 15 MiB, and the curve. Without a GPU it takes hours: then try --steps 20.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

import fewfire.torch as ft
from fewfire.papers.sparse_activations.lazy_neurons.language import (
    Decoder,
    DecoderCache,
    DecoderShape,
    LanguageTraining,
    TrainedDecoder,
    standard_library,
    train_decoder,
)

SHAPE = DecoderShape(model=512, width=4096, layers=5, heads=8, context=512)
PROMPTS, PROMPT, COUNT, ASKED = 6, 64, 96, 1.5
SHARD_BYTES, FACTS = 15 << 20, "decoder.json"


def save_decoder(trained: TrainedDecoder, folder: Path) -> list[Path]:
    """Write the weights in bfloat16, in shards, and the facts of the training into a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    shards: list[dict[str, Any]] = [{}]
    for name, weight in trained.model.state_dict().items():
        rounded = weight.detach().to("cpu", torch.bfloat16).clone()
        if shards[-1] and sum(part.nbytes for part in shards[-1].values()) + rounded.nbytes > SHARD_BYTES:
            shards.append({})
        shards[-1][name] = rounded
    paths = [folder / f"decoder-{number}.pt" for number in range(len(shards))]
    for path, shard in zip(paths, shards, strict=True):
        torch.save(shard, path)
    facts = {
        "shape": asdict(trained.model.shape),
        "files": [path.name for path in paths],
        "seconds": trained.seconds,
        "curve": trained.curve,
    }
    (folder / FACTS).write_text(json.dumps(facts, indent=1))
    return [*paths, folder / FACTS]


def load_decoder(folder: Path) -> tuple[Decoder, dict[str, Any]]:
    """The decoder of a folder, in float32 on the CPU, and the facts of its training."""
    facts: dict[str, Any] = json.loads((folder / FACTS).read_text())
    model = Decoder(DecoderShape(**facts["shape"]))
    state: dict[str, Any] = {}
    for name in facts["files"]:
        state |= torch.load(folder / name, map_location="cpu", weights_only=True)
    model.load_state_dict({name: weight.float() for name, weight in state.items()})
    return model.eval(), facts


def decode(model: Decoder, prompt: bytes, count: int) -> tuple[bytes, list[float]]:
    """The next `count` bytes, the likeliest each time, and by how much each logit was above the second best."""
    if not 0 < len(prompt) <= model.shape.context - count:
        most = model.shape.context - count
        raise ValueError(f"prompt must have 1 to {most} bytes, so that all fits into the context; got {len(prompt)}")
    cache = DecoderCache(model.shape, model.embedding.weight)
    made, margins = bytearray(), []
    with torch.inference_mode():
        logits = model(torch.tensor([list(prompt)], device=model.embedding.weight.device), cache)[0, -1]
        for _ in range(count):
            best = torch.topk(logits.float(), 2)
            made.append(int(best.indices[0]))
            margins.append(float(best.values[0] - best.values[1]))
            logits = model(best.indices[:1][None], cache)[0, -1]
    return bytes(made), margins


def prompts() -> list[bytes]:
    """Parts of validation files, the same every time."""
    _, text = standard_library()
    return [text[start : start + PROMPT] for start in range(1000, len(text), len(text) // PROMPTS)][:PROMPTS]


def activity(model: Decoder, texts: list[bytes]) -> list[float]:
    """The share of neurons that fire in each layer on these texts."""
    seen: list[list[float]] = [[] for _ in model.blocks]
    hooks = [
        block.mlp[1].register_forward_hook(lambda _m, _i, out, row=row: row.append(float((out > 0).float().mean())))
        for block, row in zip(model.blocks, seen, strict=True)
    ]
    with torch.inference_mode():
        for text in texts:
            model(torch.tensor([list(text)]))
    for hook in hooks:
        hook.remove()
    return [round(statistics.mean(row), 4) for row in seen]


def deviation(dense: Decoder, sparse: Decoder, texts: list[bytes]) -> float:
    """The largest difference of any logit, token by token through the cache as decoding has it."""
    largest = 0.0
    with torch.inference_mode():
        for text in texts:
            caches = [DecoderCache(model.shape, model.embedding.weight) for model in (dense, sparse)]
            for byte in text:
                token = torch.tensor([[byte]])
                one, other = (model(token, cache) for model, cache in zip((dense, sparse), caches, strict=True))
                largest = max(largest, float((one - other).abs().max()))
    return largest


def agree(dense: tuple[bytes, list[float]], sparse: tuple[bytes, list[float]], bound: float) -> bool:
    """Whether both texts are the same up to the first place where the dense model's choice was within the bound."""
    for ours, theirs, margin in zip(sparse[0], dense[0], dense[1], strict=True):
        if margin <= bound:
            return True
        if ours != theirs:
            return False
    return True


def compiled(model: Decoder) -> Decoder | None:
    """The dense model with its mlps compiled, or None where that fails."""
    other = copy.deepcopy(model)
    try:
        for block in other.blocks:
            block.mlp = torch.compile(block.mlp)
        decode(other, b"import ", 4)
    except Exception as error:
        print(f"torch.compile: {type(error).__name__}, done without")
        return None
    return other


def train(given: argparse.Namespace) -> int:
    """Train the transformer and write its weights."""
    print(f"{SHAPE}: {Decoder(SHAPE).count():,} parameters", flush=True)
    torch.set_float32_matmul_precision("high")
    compiled = given.compile and given.target is None
    penalty = None if given.target is None else partial(ft.ActivityPenalty, target=given.target)
    fit = partial(train_decoder, SHAPE, seed=given.seed, compiled=compiled, penalty=penalty)
    trial = LanguageTraining(8, given.batch, given.rate, checkpoints=2, windows=8)
    per_step = min(fit(trial).seconds for _ in range(2)) / trial.steps  # the first one starts the device as well
    steps = min(given.steps, max(1, int(given.seconds / per_step)))
    print(f"{1e3 * per_step:.1f} ms per step, {steps} steps", flush=True)
    training = LanguageTraining(steps, given.batch, given.rate, checkpoints=14, windows=64)
    trained = fit(training, verbose=True)
    files = save_decoder(trained, given.weights)
    model, facts = load_decoder(given.weights)
    print((b"def main(" + decode(model, b"def main(", 150)[0]).decode(errors="replace"))
    sizes = {path.name: path.stat().st_size for path in files}
    last = facts["curve"][-1]
    print(
        json.dumps({"name": "sparse_transformer --train", "seconds": round(trained.seconds, 1), **last, "bytes": sizes})
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="folder of the weights")
    parser.add_argument("--train", action="store_true", help="write the weights instead")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", type=float, help="hold activity down to this share (fewfire.torch.ActivityPenalty)")
    parser.add_argument("--compile", action="store_true", help="steps through torch.compile, unless there is a target")
    parser.add_argument("--seconds", type=float, default=200.0, help="fewer steps where they would take longer")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    if given.train:
        return train(given)
    threads = given.threads
    torch.set_num_threads(threads)
    dense, facts = load_decoder(given.weights)
    texts = prompts()
    shares = activity(dense, texts)
    sparse = copy.deepcopy(dense)
    report = ft.sparsify(sparse, [torch.tensor([list(text)]) for text in texts])
    print(report)
    print(f"{threads} threads; {dense.count():,} parameters; activity {shares}; trained: {facts['curve'][-1]}")
    bound = 2 * deviation(dense, sparse, [text + decode(dense, text, 16)[0] for text in texts[:3]])
    sides: dict[str, Any] = {"dense": dense, "sparse": sparse}
    if (other := compiled(dense)) is not None:
        sides["compiled"] = other
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    made: dict[str, list[tuple[bytes, list[float]]]] = {name: [] for name in sides}
    for model in sides.values():
        decode(model, texts[0], 8)
    for text in texts:
        for name, model in sides.items():
            start = time.perf_counter()
            made[name].append(decode(model, text, COUNT))
            seconds[name].append(time.perf_counter() - start)
    wrong = sum(not agree(one, other, bound) for one, other in zip(made["dense"], made["sparse"], strict=True))
    same = sum(one[0] == other[0] for one, other in zip(made["dense"], made["sparse"], strict=True))
    rates = {name: round(COUNT / statistics.median(taken), 1) for name, taken in seconds.items()}
    best = {name: round(COUNT / min(taken), 1) for name, taken in seconds.items()}
    ratios = [
        figure["sparse"] / max(rate for name, rate in figure.items() if name != "sparse") for figure in (rates, best)
    ]
    missed = (["tokens per second"] if min(ratios) < ASKED else []) + (["same tokens"] if wrong else [])
    summary = {"name": "sparse_transformer", "ratio": round(min(ratios), 2), "asked": ASKED, "tokens_per_second": rates}
    facts_found = {"best": best, "activity": shares, "bound": bound, "same_texts": same, "texts": len(texts)}
    print(json.dumps({**summary, **facts_found, "missed": missed}))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
