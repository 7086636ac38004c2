"""How many neurons fire at most: a check of membership in H(n, s, k) (sparse-activations, Definition 1).

Up to `exact_up_to` inputs the whole cube is visited and the answer is exact. Beyond, uniform inputs
are drawn, and what is certain is a bound: with 95% confidence over the draw of N inputs, the share
of the cube on which more than the largest count seen fire is at most 1 − 0.05^(1/N) ≤ −ln(0.05)/N
(Clopper–Pearson with no exceedance; it holds for the sample maximum itself, because the maximum
stays below the (1 − p)-quantile only with probability (1 − p)^N).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._cube import MAX_EXACT, cube_blocks
from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer
from fewfire.networks._evaluate import activity, rows_per_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import SignArray
    from fewfire.networks._two_layer import TwoLayer


@dataclass(frozen=True, eq=False)
class SparsityReport:
    """The largest number of neurons seen firing on one input of the cube.

    Parameters
    ----------
    max_active : int
    exact : bool
        Whether every input of the cube was visited.
    inputs_checked : int
    witness : int8 array of shape (inputs,)
        An input on which `max_active` neurons fire.
    k : int or None
        The bound that was asked about.
    """

    max_active: int
    exact: bool
    inputs_checked: int
    witness: SignArray
    k: int | None = None

    @property
    def exceed_probability(self) -> float:
        """A 95% upper bound on the share of the cube where more than `max_active` fire; 0 when exact."""
        return 0.0 if self.exact else -math.expm1(math.log(0.05) / self.inputs_checked)

    def holds(self, k: int | None = None) -> bool:
        """Whether at most k neurons fire on every input checked: a proof when `exact`, evidence otherwise."""
        bound = check_integer("k", self.k if k is None else k, 0, remedy="pass k here or to check_sparsity")
        return self.max_active <= bound


def check_sparsity(
    net: TwoLayer,
    k: int | None = None,
    *,
    samples: int = 100_000,
    seed: int | Stream = 0,
    exact_up_to: int = MAX_EXACT,
) -> SparsityReport:
    """Count the neurons that fire on the inputs of the cube {−1, +1}ⁿ.

    Parameters
    ----------
    net : TwoLayer
    k : int, optional
        The bound that `report.holds()` then answers for.
    samples : int
        How many inputs are drawn when the cube is too large.
    seed : int or Stream
        Of the drawn inputs (stream "sparsity").
    exact_up_to : int
        The largest number of coordinates for which the whole cube is visited.
    """
    if k is not None:
        check_integer("k", k, 0, net.width, "no more than all neurons can fire")
    samples = check_integer("samples", samples, 1)
    exact = net.inputs <= check_integer("exact_up_to", exact_up_to, 0, 30, "2**30 inputs take hours")
    stream = as_stream(seed, "sparsity")
    rows = rows_per_block(net)
    blocks = cube_blocks(net.inputs, rows) if exact else _drawn_blocks(stream, net.inputs, samples, rows)
    largest, witness = -1, np.ones(net.inputs, dtype=np.int8)
    for block in blocks:
        counts = activity(net, block).per_input
        if counts.max() > largest:
            largest, witness = int(counts.max()), block[counts.argmax()].copy()
    return SparsityReport(largest, exact, 2**net.inputs if exact else samples, witness, k)


def _drawn_blocks(stream: Stream, inputs: int, samples: int, rows: int) -> Iterator[SignArray]:
    for start in range(0, samples, rows):
        yield stream.sign_rows(min(rows, samples - start), inputs, start)
