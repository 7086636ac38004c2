"""Rows of weights as int8 codes, with what a bound on their scores needs.

A row w is scale · code + r with whole codes of at most 127. For an input x that is known as unit · whole + ρ,

    |⟨w, x⟩ − scale · unit · ⟨code, whole⟩| ≤ ‖r‖ ‖x‖ + ‖scale · code‖ ‖ρ‖,

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
"""Codes per row are padded with zeros to a multiple of this, which a warp reads at a time."""

_AT_ONCE = 1 << 22  # weights held in float64 at a time: 32 MB, and some copies of them


def empty_codes(weight: Any) -> tuple[Any, Any]:
    """Room for what `encode` writes: int8 of shape (width, padded inputs), and float32 of shape (width, 4)."""
    width, inputs = weight.shape
    codes = torch.zeros(width, -(-inputs // STEP) * STEP, dtype=torch.int8, device=weight.device)
    return codes, torch.zeros(width, 4, dtype=torch.float32, device=weight.device)


def encode(weight: Any, bias: Any, codes: Any, bounds: Any) -> None:
    """Write the codes of each row, and (scale, ‖r‖, ‖scale · code‖, bias)."""
    inputs = weight.shape[1]
    for rows in _pieces(weight):
        part = weight[rows].detach().double()
        scale = (part.abs().amax(dim=1, keepdim=True) / 127).float().double()
        scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        code = torch.nan_to_num(torch.round(part / scale)).clamp(-127, 127)
        codes[rows, :inputs] = code.to(torch.int8)
        said = code * scale
        bounds[rows, 0] = scale[:, 0].float()
        # What is not finite leaves out infinitely much: such rows are always scored themselves.
        left = torch.nan_to_num((part - said).norm(dim=1), nan=torch.inf, posinf=torch.inf)
        bounds[rows, 1] = _up(left)
        bounds[rows, 2] = _up(torch.nan_to_num(said.norm(dim=1), nan=torch.inf, posinf=torch.inf))
    bounds[:, 3] = 0.0 if bias is None else bias.detach().float()


def all_finite(weight: Any) -> bool:
    """Whether no weight is infinite or NaN."""
    return all(bool(torch.isfinite(weight[rows].detach()).all()) for rows in _pieces(weight))


def _pieces(weight: Any) -> Iterator[slice]:
    """The rows of a matrix, as many at a time as are held in float64."""
    width, columns = weight.shape
    rows = max(1, _AT_ONCE // columns)
    for start in range(0, width, rows):
        yield slice(start, start + rows)


def _up(norm: Any) -> Any:
    """At least this in float32, below the normal range too."""
    single = (norm * (1 + 1e-6)).float()
    up = torch.nextafter(single, torch.full_like(single, torch.inf))
    return torch.where(norm > 0, up, torch.zeros_like(up))
