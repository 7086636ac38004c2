"""How many neurons fire at most: membership in H(n, s, k), on the cube or on a distribution.

`check_sparsity` counts on every input of the cube (sparse-activations, Definition 1) up to `exact_up_to` inputs, and
the answer is exact. Beyond, uniform inputs are drawn; or rows of any distribution are given, on whose support alone the
class asks for k. Then two things are certain with 95% confidence over the draw of N inputs:

- the share of the distribution on which more than the largest count seen fire is at most 1 − 0.05^(1/N) ≤ −ln(0.05)/N
  (Clopper–Pearson with no exceedance; it holds for the sample maximum itself, because the maximum stays below the
  (1 − p)-quantile only with probability (1 − p)^N);
- Pr[more than k fire], the probability that Remark 11 bounds, lies in Clopper and Pearson's interval around the
  share seen (`SparsityReport.exceeds`), for a k chosen before looking.

Rows that the network was fitted to are not draws in this sense: their share is what training made it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fewfire._cube import MAX_EXACT, cube_blocks
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._types import AnyArray, IdArray
from fewfire._validate import check_integer, check_number
from fewfire.fourier._sampled import Interval
from fewfire.networks._evaluate import row_blocks, rows_per_block
from fewfire.networks._two_layer import TwoLayer


@dataclass(frozen=True, eq=False)
class SparsityReport:
    """How many neurons were seen firing on one input, at most and how often.

    Parameters
    ----------
    max_active : int
    exact : bool
        Whether every input of the cube was visited.
    inputs_checked : int
    witness : array of shape (inputs,)
        An input on which `max_active` neurons fire.
    counts : int64 array of shape (width + 1,)
        On how many of the inputs checked 0, 1, 2, … neurons fire.
    k : int or None
        The bound that was asked about.
    """

    max_active: int
    exact: bool
    inputs_checked: int
    witness: AnyArray
    counts: IdArray
    k: int | None = None

    @property
    def exceed_probability(self) -> float:
        """A 95% upper bound on the share of inputs where more than `max_active` fire; 0 when exact."""
        return 0.0 if self.exact else -math.expm1(math.log(0.05) / self.inputs_checked)

    def holds(self, k: int | None = None) -> bool:
        """Whether at most k neurons fire on every input checked: a proof when `exact`, evidence otherwise."""
        return self.max_active <= self._bound(k)

    def exceeding(self, k: int | None = None) -> int:
        """On how many of the inputs checked more than k neurons fire."""
        return int(self.counts[self._bound(k) + 1 :].sum())

    def exceeds(self, k: int | None = None, *, confidence: float = 0.95) -> Interval:
        """Pr[more than k neurons fire] with Clopper and Pearson's interval; its ends are the value when exact.

        Parameters
        ----------
        k : int, optional
            That of `check_sparsity` unless given. One chosen after a look at the counts voids the confidence.
        confidence : float in (0, 1)
        """
        from scipy.stats import binomtest

        level = check_number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
        over, total = self.exceeding(k), self.inputs_checked
        share = over / total
        if self.exact:
            return Interval(share, share, share)
        interval = binomtest(over, total).proportion_ci(level, method="exact")
        return Interval(share, float(interval.low), float(interval.high))

    def _bound(self, k: int | None) -> int:
        return check_integer("k", self.k if k is None else k, 0, remedy="pass k here or to check_sparsity")

    def __repr__(self) -> str:
        where = "the whole cube" if self.exact else "drawn inputs"
        over = "" if self.k is None else f", more than k={self.k} on {self.exceeding()}"
        return f"SparsityReport({self.inputs_checked} inputs, {where}: max_active={self.max_active}{over})"


def check_sparsity(
    network: TwoLayer,
    k: int | None = None,
    *,
    X: AnyArray | None = None,
    samples: int | None = None,
    seed: int | Stream = 0,
    exact_up_to: int = MAX_EXACT,
) -> SparsityReport:
    """Count the neurons that fire on the inputs of the cube {−1, +1}ⁿ, or on rows of another distribution.

    Parameters
    ----------
    network : TwoLayer
    k : int, optional
        The bound that `report.holds()` and `report.exceeds()` then answer for.
    X : array of shape (rows, inputs), optional
        Independent rows of the distribution that matters, instead of the cube; any numbers.
    samples : int, optional
        How many inputs are drawn when the cube is too large: 100,000 unless given.
    seed : int or Stream
        Of the drawn inputs (stream "sparsity").
    exact_up_to : int
        The largest number of coordinates for which the whole cube is visited.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.construct.junta(n=10, support=[1, 4, 7], table=[1, 1, 1, -1, 1, -1, -1, -1])
    >>> report = ff.networks.check_sparsity(network)
    >>> report.max_active, report.exact
    (1, True)
    """
    if k is not None:
        check_integer("k", k, 0, network.width, "no more than all neurons can fire")
    rows = rows_per_block(network)
    exact = False
    blocks: Iterator[AnyArray]
    if X is not None:
        if samples is not None:
            raise invalid("samples", "must be left out where X is given", samples, "pass as many rows of X")
        blocks = row_blocks(network, X)
    else:
        drawn = check_integer("samples", 100_000 if samples is None else samples, 1)
        exact = network.inputs <= check_integer("exact_up_to", exact_up_to, 0, 30, "2**30 inputs take hours")
        stream = as_stream(seed, "sparsity")
        blocks = cube_blocks(network.inputs, rows)
        if not exact:
            starts = range(0, drawn, rows)
            blocks = (stream.sign_rows(min(rows, drawn - start), network.inputs, start) for start in starts)
    largest, witness = -1, np.ones(network.inputs, dtype=np.int8)
    counts = np.zeros(network.width + 1, dtype=np.int64)
    for block in blocks:
        fired = TwoLayer.activity(network, block).per_input  # by no index
        counts += np.bincount(fired, minlength=len(counts))
        if fired.max() > largest:
            largest, witness = int(fired.max()), block[fired.argmax()].copy()
    return SparsityReport(largest, exact, int(counts.sum()), witness, counts, k)
