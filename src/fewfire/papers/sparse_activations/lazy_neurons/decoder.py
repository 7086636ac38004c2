"""A small ReLU transformer over bytes that decodes with a cache of keys and values.

Pre-norm blocks, x += attention(norm(x)), x += mlp(norm(x)), where mlp is Linear, ReLU, Linear. All heads of queries
share one head of keys and values (multi-query attention); positions are learned; one matrix is the embedding and the
last layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fewfire._optional import require

torch: Any = require("torch", "torch", "fewfire.papers.sparse_activations.lazy_neurons")
nn: Any = torch.nn

BYTES: Final = 256


@dataclass(frozen=True)
class DecoderShape:
    """The sizes of a decoder.

    Parameters
    ----------
    model : int
        Numbers per token between blocks; a multiple of `heads`.
    width : int
        Hidden neurons of each block's mlp.
    layers, heads : int
    context : int
        Tokens seen at once.
    """

    model: int
    width: int
    layers: int
    heads: int
    context: int


class DecoderCache:
    """Keys and values of the tokens decoded so far, of one sequence.

    Parameters
    ----------
    shape : DecoderShape
    like : tensor
        Of the model's device and dtype.
    """

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
