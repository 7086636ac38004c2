"""A small ReLU transformer over bytes, trained on the source of Python's own standard library, and its activity.

Pre-norm blocks, x += attention(norm(x)), x += mlp(norm(x)), where mlp is Linear, ReLU, Linear. All heads of queries
share one head of keys and values (multi-query attention); positions are learned; one matrix is the embedding and the
last layer. A cache of keys and values serves decoding.

The text is that of the interpreter that runs, so no data has to be fetched. AdamW with a cosine schedule, in bfloat16
on a GPU. Activity is the share of (token, neuron) pairs of a block's mlp with a positive ReLU, measured on the same
validation windows every time.
"""

from __future__ import annotations

import math
import os
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fewfire._errors import invalid
from fewfire._optional import require

torch: Any = require("torch", "torch", "fewfire.papers.sparse_activations.lazy_neurons")
nn: Any = torch.nn

BYTES, WEIGHT_DECAY = 256, 0.1
VALIDATION = 20  # one file in so many is for validation
ELSEWHERE = {"site-packages", "dist-packages", "test", "tests", "__pycache__"}


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
class DecoderShape:
    """Numbers per token between blocks, a multiple of `heads`; hidden neurons of each mlp; tokens seen at once."""

    model: int
    width: int
    layers: int
    heads: int
    context: int


class DecoderCache:
    """Keys and values of the tokens decoded so far, of one sequence; `like` has the model's device and dtype."""

    def __init__(self, shape: DecoderShape, like: Any) -> None:
        size = (shape.layers, 1, 1, shape.context, shape.model // shape.heads)
        self.keys, self.values = like.new_zeros(size), like.new_zeros(size)
        self.length = 0


class Attention(nn.Module):  # type: ignore[misc]
    """Causal self-attention with several heads."""

    def __init__(self, shape: DecoderShape, layer: int) -> None:
        super().__init__()
        self.heads, self.layer = shape.heads, layer
        self.queries = nn.Linear(shape.model, shape.model)
        self.keys_values = nn.Linear(shape.model, 2 * shape.model // shape.heads)
        self.project = nn.Linear(shape.model, shape.model)

    def forward(self, x: Any, cache: DecoderCache | None = None) -> Any:
        """Attend to this and earlier tokens, those of the cache included; x has the shape (batch, tokens, model)."""
        batch, tokens, model = x.shape
        q = self.queries(x).view(batch, tokens, self.heads, -1).transpose(1, 2)
        k, v = self.keys_values(x)[:, None].chunk(2, dim=-1)
        if cache is not None:
            end = cache.length + tokens
            cache.keys[self.layer][:, :, cache.length : end] = k
            cache.values[self.layer][:, :, cache.length : end] = v
            k, v = cache.keys[self.layer][:, :, :end], cache.values[self.layer][:, :, :end]
        # One token sees all there is; several at once start an empty cache, or have none.
        k, v = (part.expand(-1, self.heads, -1, -1) for part in (k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
        return self.project(mixed.transpose(1, 2).reshape(batch, tokens, model))


class DecoderBlock(nn.Module):  # type: ignore[misc]
    """Attention and mlp, each added to what comes in."""

    def __init__(self, shape: DecoderShape, layer: int) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(shape.model), nn.LayerNorm(shape.model)
        self.attention = Attention(shape, layer)
        self.mlp = nn.Sequential(nn.Linear(shape.model, shape.width), nn.ReLU(), nn.Linear(shape.width, shape.model))

    def forward(self, x: Any, cache: DecoderCache | None = None) -> Any:
        """The block on x of shape (batch, tokens, model)."""
        x = x + self.attention(self.norm_attention(x), cache)
        return x + self.mlp(self.norm_mlp(x))


class Decoder(nn.Module):  # type: ignore[misc]
    """The transformer; weights are drawn by PyTorch's generator, deviation 0.02, less for what is added to the sum."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(BYTES, shape.model)
        self.positions = nn.Embedding(shape.context, shape.model)
        self.blocks = nn.ModuleList([DecoderBlock(shape, layer) for layer in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.model)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                added = name.endswith(("project.weight", "mlp.2.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * shape.layers) ** 0.5 if added else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def count(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, tokens: Any, cache: DecoderCache | None = None) -> Any:
        """Logits of the next byte, shape (batch, tokens, 256), for tokens of shape (batch, tokens)."""
        start = 0 if cache is None else cache.length
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.embedding(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x, cache)
        if cache is not None:
            cache.length += tokens.shape[1]
        return nn.functional.linear(self.norm(x), self.embedding.weight)


@dataclass(frozen=True)
class LanguageTraining:
    """Gradient steps, windows of `context` bytes in each, and the largest learning rate; measurements.

    The rate rises in the first twentieth of the steps and falls to a tenth by a cosine. `checkpoints` after the start,
    at steps 1, … `steps` that grow by a factor, activity is measured on so many validation `windows`.
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
    """A decoder, what was seen while it was trained, and the seconds of training, measurements included."""

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

    The text, to train on and for validation, is by default the standard library, the device a GPU where there is one.
    Steps may go through `torch.compile`; or a penalty, a function of the model that gives a
    `fewfire.torch.ActivityPenalty`, is added to the loss. Checkpoints are printed where `verbose`.
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
    matrices, others = ([p for p in model.parameters() if (p.ndim == 2) == matrix] for matrix in (True, False))
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
    """Validation loss, and per layer the share of neurons that fire with its 95% interval over windows."""
    shares: dict[Any, list[Any]] = {}

    def count(relu: Any, _: Any, out: Any) -> None:
        shares.setdefault(relu, []).append((out > 0).float().mean(dim=(1, 2)))

    hooks = [block.mlp[1].register_forward_hook(count) for block in model.blocks]
    try:
        with torch.inference_mode(), torch.autocast(windows.device.type, torch.bfloat16, enabled=windows.is_cuda):
            losses = [_loss(model(part[:, :-1]), part).float() * len(part) for part in windows.split(8)]
    finally:
        for hook in hooks:
            hook.remove()
    per_window = torch.stack([torch.cat(layer) for layer in shares.values()]).double().cpu()
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
