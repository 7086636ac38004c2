"""Rows of weights as int8 codes, with what a bound on their scores needs.

A row w is v + r, where v = scale · code with whole codes of at most 127 and a scale for every 512 inputs: a large
weight then makes only those around it coarse. For an input x that is known as unit · whole + ρ,

    |⟨w, x⟩ − unit · ⟨v, whole⟩| ≤ ‖r‖ ‖x‖ + ‖v‖ ‖ρ‖,

so a row whose coarse score plus this bound stays at or below the threshold does not fire. Norms are computed in
float64 and rounded up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Iterator

torch: Any = require("torch", "torch", "fewfire.torch")

STEP = 512
"""Codes that share a scale, and that a warp reads at a time; rows are padded with zeros to a multiple of it."""

LEFT, ROUNDED, BIAS, SCALES = 0, 1, 2, 3
"""Columns of what comes with the codes of a row: ‖r‖, ‖v‖, its bias, and the scales from there on."""

_AT_ONCE = 1 << 22  # weights held in float64 at a time: 32 MB, and some copies of them


def empty_codes(weight: Any) -> tuple[Any, Any]:
    """Room for what `encode` writes: int8 of shape (width, padded inputs), and float32, a multiple of 4 per row."""
    width, inputs = weight.shape
    groups = -(-inputs // STEP)
    codes = torch.zeros(width, groups * STEP, dtype=torch.int8, device=weight.device)
    return codes, torch.zeros(width, -(-(SCALES + groups) // 4) * 4, dtype=torch.float32, device=weight.device)


def encode(weight: Any, bias: Any, codes: Any, bounds: Any) -> None:
    """Write the codes of each row and what comes with them."""
    inputs, padded = weight.shape[1], codes.shape[1]
    for rows in _pieces(weight):
        part = torch.nn.functional.pad(weight[rows].detach().double(), (0, padded - inputs)).unflatten(1, (-1, STEP))
        scale = (part.abs().amax(dim=2, keepdim=True) / 127).float().double()
        scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        code = torch.nan_to_num(torch.round(part / scale)).clamp(-127, 127)
        rounded = code * scale
        codes[rows] = code.flatten(1).to(torch.int8)
        bounds[rows, SCALES : SCALES + padded // STEP] = scale[:, :, 0].float()
        # What is not finite leaves out infinitely much: such rows are always scored themselves.
        left = torch.nan_to_num((part - rounded).flatten(1).norm(dim=1), nan=torch.inf, posinf=torch.inf)
        bounds[rows, LEFT] = _up(left)
        bounds[rows, ROUNDED] = _up(torch.nan_to_num(rounded.flatten(1).norm(dim=1), nan=torch.inf, posinf=torch.inf))
    bounds[:, BIAS] = 0.0 if bias is None else bias.detach().float()


def all_finite(weight: Any) -> bool:
    """Whether no weight is infinite or NaN."""
    return all(bool(torch.isfinite(weight[rows].detach()).all()) for rows in _pieces(weight))


def _pieces(weight: Any) -> Iterator[slice]:
    """The rows of a matrix, as many at a time as fit in float64."""
    width, columns = weight.shape
    rows = max(1, _AT_ONCE // columns)
    for start in range(0, width, rows):
        yield slice(start, start + rows)


def _up(norm: Any) -> Any:
    """At least this in float32, below the normal range too."""
    single = (norm * (1 + 1e-6)).float()
    up = torch.nextafter(single, torch.full_like(single, torch.inf))
    return torch.where(norm > 0, up, torch.zeros_like(up))
