"""How many tokens per second does a ReLU transformer gain when its blocks compute only what fires?

Greedy decoding with a cache of keys and values, one sequence, the whole model on all cores: the transformer that
`train_lazy_transformer.py` trained (24 M parameters, nothing in it asks for sparsity) as PyTorch runs it, eager and with
its blocks through `torch.compile` (the faster one counts), and after `fewfire.torch.sparsify`. All take turns, prompt by
prompt, and decode held-out source files. Correctness first: both decode the same bytes, except where the two best
logits of the dense model are closer than the two models may differ (twice the largest deviation of any logit, measured
on the same tokens); from such a place on, texts may part. Asked: 1.5 times the tokens per second.

    python benchmarks/train_lazy_transformer.py --out lazy-transformer    # once, on a GPU
    python benchmarks/sparse_transformer.py lazy-transformer
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

import fewfire.torch as ft
from fewfire._cores import usable_cores
from fewfire.experiments.lazy_neurons._decoder import Decoder, DecoderCache, decode
from fewfire.experiments.lazy_neurons._language import standard_library
from fewfire.experiments.lazy_neurons._weights import load_decoder

PROMPTS, PROMPT, COUNT, ASKED = 6, 64, 96, 1.5


def prompts() -> list[bytes]:
    """Places in held-out files, the same every time."""
    _, held = standard_library()
    return [held[place : place + PROMPT] for place in range(1000, len(held), len(held) // PROMPTS)][:PROMPTS]


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
    twin = copy.deepcopy(model)
    try:
        for block in twin.blocks:
            block.mlp = torch.compile(block.mlp)
        decode(twin, b"import ", 4)
    except Exception as error:
        print(f"torch.compile: {type(error).__name__}, done without")
        return None
    return twin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="folder that train_lazy_transformer.py wrote")
    parser.add_argument("--threads", type=int, default=usable_cores())
    given = parser.parse_args()
    threads = given.threads
    torch.set_num_threads(threads)
    dense, facts = load_decoder(given.weights)
    texts = prompts()
    shares = activity(dense, texts)
    sparse = copy.deepcopy(dense)
    report = ft.sparsify(sparse, [torch.tensor([list(text)]) for text in texts])
    print(report)
    print(f"{threads} threads; {dense.shape.parameters:,} parameters; activity {shares}; trained: {facts['curve'][-1]}")
    bound = 2 * deviation(dense, sparse, [text + decode(dense, text, 16)[0] for text in texts[:3]])
    sides: dict[str, Any] = {"dense": dense, "sparse": sparse}
    if (twin := compiled(dense)) is not None:
        sides["compiled"] = twin
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
