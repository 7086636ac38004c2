"""The empirical Rademacher complexity of H(n, s, k) on a sample, from below (sparse-activations, section 5).

𝓡(S) = E_ζ max_h (1/m) Σ_i ζ_i h(x_i) over the networks h of scales W and B. The maximum is searched, so every number is
a lower estimate, attained by a network that is returned. Searched are networks of k' ≤ k copies of one block of 2^b
neurons, k'·2^b ≤ s, of which at most one fires on any input of the cube (`_address_blocks`); without an address, b = 0,
a block is one unrestricted neuron. Blocks do not depend on s and k, so one search serves a whole table, and the
estimates grow with s and with k as the class does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer, check_number, check_signs
from fewfire.experiments.sparse_activations._address_blocks import Block, fit_block
from fewfire.networks import TwoLayer
from fewfire.theory import sparse_activations as bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._types import AnyArray, Float64Array, SignArray


@dataclass(frozen=True, eq=False)
class RademacherTable:
    """Lower estimates of the Rademacher complexity of H(n, s, k) for any s and k on one sample.

    Parameters
    ----------
    X : int8 array of ±1, shape (m, n)
    zeta : int8 array of ±1, shape (draws, m)
    W, B : float
        The scales of the class.
    blocks : list of lists of Block
        For each draw of ζ, the best block found of 1, 2, 4, … neurons.
    """

    X: SignArray
    zeta: SignArray
    W: float
    B: float
    blocks: list[list[Block]]

    def values(self, s: int, k: int) -> Float64Array:
        """For each draw of ζ the largest correlation found, shape (draws,)."""
        return np.array([copies * block.value for copies, block in self._chosen(s, k)])

    def estimate(self, s: int, k: int) -> tuple[float, float]:
        """The mean over the draws of ζ and its standard error."""
        values = self.values(s, k)
        return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))

    def witness(self, s: int, k: int, draw: int) -> TwoLayer:
        """The network of s neurons, at most k active on any input of the cube, that attains `values(s, k)[draw]`."""
        copies, block = self._chosen(s, k)[check_integer("draw", draw, 0, len(self.blocks) - 1)]
        spare = s - copies * len(block.bias)
        hidden = np.vstack([np.tile(block.hidden, (copies, 1)), np.zeros((spare, self.X.shape[1]))])
        bias, output = (np.append(np.tile(part, copies), np.zeros(spare)) for part in (block.bias, block.output))
        return TwoLayer(hidden, bias, output)

    def row(self, s: int, k: int) -> dict[str, Any]:
        """The estimate beside eq. (15), its explicit form, Conjecture 20 and the classical bound, as plain numbers."""
        (m, n), (W, B) = self.X.shape, (self.W, self.B)
        value, error = self.estimate(s, k)
        return {
            "s": s,
            "k": k,
            "estimate": value,
            "standard_error": error,
            "theorem_19": bounds.rademacher(n, s, k, W, B, m),
            "explicit": bounds.rademacher_explicit(n, s, k, W, B, m),
            "conjecture_20": bounds.rademacher_conjectured(n, s, k, W, B, m),
            "classical": bounds.rademacher_classical(n, s, W, B, m),
        }

    def _chosen(self, s: int, k: int) -> list[tuple[int, Block]]:
        """For each draw, how many copies of which block are best."""
        s = check_integer("s", s, 1, remedy="a network has at least one neuron")
        k = check_integer("k", k, 1, s, "no more neurons can fire than there are")
        return [
            max(
                ((min(k, s >> b), block) for b, block in enumerate(found) if s >> b),
                key=lambda pair: pair[0] * pair[1].value,
            )
            for found in self.blocks
        ]


def rademacher_table(
    X: AnyArray,
    W: float,
    B: float,
    *,
    max_block: int,
    draws: int = 8,
    restarts: int = 4,
    steps: int = 60,
    seed: int | Stream = 0,
    progress: Callable[[int, int], object] | None = None,
) -> RademacherTable:
    """Search blocks of 1, 2, 4, … ≤ max_block neurons that correlate with random signs on a sample.

    Parameters
    ----------
    X : array of ±1, shape (m, n)
    W, B : float
        Scales of the class (Definition 2); W > 0.
    max_block : int
        Largest block; s/k for the largest s and smallest k of interest. At most 2^n.
    draws : int
        Of ζ; at least 2, for the standard error.
    restarts, steps : int
        Choices of the address of a block, and steps of each ascent. More never gives less.
    seed : int or Stream
        Of ζ and of the search (stream "rademacher").
    progress : callable (done, total), optional
    """
    signs = check_signs("X", X)
    m, n = signs.shape
    W, B = check_number("W", W, 0.0, open_low=True), check_number("B", B, 0.0)
    sizes: Sequence[int] = range(check_integer("max_block", max_block, 1, 2**n).bit_length())
    draws = check_integer("draws", draws, 2, remedy="a standard error needs two draws")
    check_integer("restarts", restarts, 1)
    check_integer("steps", steps, 0)
    stream = as_stream(seed, "rademacher")
    zeta = stream.child("zeta").sign_rows(draws, m)
    blocks: list[list[Block]] = []
    for draw in range(draws):
        search = stream.child(f"draw {draw}")
        row = []
        for b in sizes:
            row.append(fit_block(signs, zeta[draw], b, W, B, search.child(f"block {b}"), restarts if b else 1, steps))
            if progress is not None:
                progress(draw * len(sizes) + b + 1, draws * len(sizes))
        blocks.append(row)
    return RademacherTable(signs, zeta, W, B, blocks)
