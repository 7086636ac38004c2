"""Training of the ReLU transformer on the source of Python's own standard library, with its activity on the way.

The text is that of the interpreter that runs, so no data has to be fetched; one file in twenty is for validation.
AdamW with a cosine schedule, in bfloat16 on a GPU. Activity is the share of (token, neuron) pairs of a block's mlp with
a positive ReLU, measured on the same validation windows every time.
"""

from __future__ import annotations

import math
import os
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire.papers.sparse_activations.lazy_neurons.decoder import Decoder, DecoderShape

torch: Any = require("torch", "torch", "fewfire.papers.sparse_activations.lazy_neurons")

VALIDATION: Final = 20
"""One file in so many."""
WEIGHT_DECAY: Final = 0.1
ELSEWHERE: Final = {"site-packages", "dist-packages", "test", "tests", "__pycache__"}


def standard_library() -> tuple[bytes, bytes]:
    """The source files of the running Python's library, without its tests: to train on, and for validation."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = []
    for folder, inside, names in os.walk(root):
        inside[:] = [name for name in inside if name not in ELSEWHERE]  # installed packages are not even listed
        files += [Path(folder, name) for name in names if name.endswith(".py")]
    files.sort()
    parts = [path.read_bytes() for path in files]
    train = b"\0".join(part for i, part in enumerate(parts) if i % VALIDATION)
    validation = b"\0".join(parts[::VALIDATION])
    if len(train) < 1_000_000:
        where = f"{len(train):,} bytes in {root}"
        raise invalid("the standard library", "must have a megabyte of source files", where, "install Python with them")
    return train, validation


@dataclass(frozen=True)
class LanguageTraining:
    """How a decoder is trained.

    Parameters
    ----------
    steps, batch_size : int
        Gradient steps, and windows of `context` bytes in each.
    learning_rate : float
        The largest, after a twentieth of the steps; it falls to a tenth by a cosine.
    checkpoints : int
        How often activity is measured after the start, at steps 1, … `steps` that grow by a factor.
    windows : int
        Validation windows it is measured on.
    """

    steps: int
    batch_size: int
    learning_rate: float = 1e-3
    checkpoints: int = 8
    windows: int = 32

    def measured_steps(self) -> list[int]:
        """0 and the steps of the checkpoints."""
        powers = [round(self.steps ** (i / (self.checkpoints - 1))) for i in range(self.checkpoints)]
        return sorted({0, *powers, self.steps})

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        warm = max(1, self.steps // 20)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (0.55 + 0.45 * math.cos(math.pi * (step - warm) / max(1, self.steps - warm)))


class TrainedDecoder(NamedTuple):
    """A decoder, what was seen while it was trained, and the seconds of training, measurements included.

    `curve` has per checkpoint "step", "loss" (on validation windows, nats per byte), "activity" (of each layer) and
    "half_width" (of its 95% interval over these windows).
    """

    model: Decoder
    curve: list[dict[str, Any]]
    seconds: float


def train_decoder(
    shape: DecoderShape,
    training: LanguageTraining,
    text: tuple[bytes, bytes] | None = None,
    *,
    seed: int = 0,
    device: str | None = None,
    compiled: bool = False,
    penalty: Any = None,
    verbose: bool = False,
) -> TrainedDecoder:
    """Train a decoder from scratch.

    Parameters
    ----------
    shape : DecoderShape
    training : LanguageTraining
    text : pair of bytes, optional
        To train on and for validation; the standard library by default.
    seed : int
        Of weights and windows.
    device : str, optional
        A GPU where there is one.
    compiled : bool
        Whether steps go through `torch.compile`.
    penalty : function of the model that gives a `fewfire.torch.ActivityPenalty`, optional
        Added to the loss, unless None; not together with `compiled`.
    verbose : bool
        Whether checkpoints are printed.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    train, validation = (torch.frombuffer(bytearray(part), dtype=torch.uint8) for part in text or standard_library())
    windows = _windows(validation, training.windows, shape.context, torch.Generator().manual_seed(0)).to(device)
    draw = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Decoder(shape).to(device)
    step_model = torch.compile(model) if compiled else model
    term = None if penalty is None else penalty(model)
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=training.learning_rate, betas=(0.9, 0.95), fused=device == "cuda")
    curve: list[dict[str, Any]] = []
    start = time.perf_counter()
    checkpoints = set(training.measured_steps())
    for step in range(training.steps + 1):
        if step in checkpoints:
            row = {"step": step, **measure_activity(model, windows)}
            curve.append(row)
            if verbose:
                shares = " ".join(f"{share:.1%}" for share in row["activity"])
                print(f"step {step}: validation loss {row['loss']:.3f}, activity {shares}", flush=True)
        if step == training.steps:
            break
        for group in optimiser.param_groups:
            group["lr"] = training.rate(step)
        batch = _windows(train, training.batch_size, shape.context, draw).to(device, non_blocking=True)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = _loss(step_model(batch[:, :-1]), batch)
            if term is not None:
                loss = loss + term()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    if term is not None:
        term.close()
    return TrainedDecoder(model, curve, time.perf_counter() - start)


def measure_activity(model: Decoder, windows: Any) -> dict[str, Any]:
    """Validation loss, and per layer the share of neurons that fire with its 95% interval over windows.

    Parameters
    ----------
    model : Decoder
    windows : int64 tensor of shape (windows, context + 1)
    """
    shares: list[list[Any]] = [[] for _ in model.blocks]

    def count(layer: int) -> Any:
        return lambda module, given, out: shares[layer].append((out > 0).float().mean(dim=(1, 2)))

    hooks = [block.mlp[1].register_forward_hook(count(layer)) for layer, block in enumerate(model.blocks)]
    losses = []
    try:
        with torch.inference_mode(), torch.autocast(windows.device.type, torch.bfloat16, enabled=windows.is_cuda):
            losses = [_loss(model(part[:, :-1]), part).float() * len(part) for part in windows.split(8)]
    finally:
        for hook in hooks:
            hook.remove()
    per_window = torch.stack([torch.cat(layer) for layer in shares]).double().cpu()
    deviation = per_window.std(dim=1) / math.sqrt(per_window.shape[1])
    return {
        "loss": float(sum(losses)) / len(windows),
        "activity": per_window.mean(dim=1).tolist(),
        "half_width": (1.96 * deviation).tolist(),
    }


def _windows(text: Any, count: int, context: int, draw: Any) -> Any:
    """`count` windows of context + 1 bytes at random positions."""
    starts = torch.randint(len(text) - context - 1, (count, 1), generator=draw)
    return text[starts + torch.arange(context + 1)].long()


def _loss(logits: Any, batch: Any) -> Any:
    """Nats per byte of predicting each byte from those before it."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())
