"""Which neurons fire, how many, and how many at most on the cube.

`ActiveSets` lists the firing neurons of every input in compressed rows, the sparse counterpart of a (rows, width) table
of bits; `Activity` counts them per input and per neuron. `check_sparsity` asks how many fire at most, a check of
membership in H(n, s, k) (sparse-activations, Definition 1): up to `exact_up_to` inputs the whole cube is visited and
the answer is exact. Beyond, uniform inputs are drawn, and what is certain is a bound: with 95% confidence over the draw
of N inputs, the share of the cube on which more than the largest count seen fire is at most
1 − 0.05^(1/N) ≤ −ln(0.05)/N (Clopper–Pearson with no exceedance; it holds for the sample maximum itself, because the
maximum stays below the (1 − p)-quantile only with probability (1 − p)^N).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._compressed_rows import CompressedRows
from fewfire._cube import MAX_EXACT, cube_blocks
from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer
from fewfire.networks._evaluate import preactivation_blocks, rows_per_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scipy.sparse import csr_array

    from fewfire._types import AnyArray, IdArray, SignArray
    from fewfire.networks._two_layer import TwoLayer


@dataclass(frozen=True, eq=False)
class ActiveSets(CompressedRows):
    """The active neurons of every input; unpacks as the pair `indptr, indices = network.active(X)`.

    Parameters
    ----------
    indptr : int64 array of shape (rows + 1,)
        Row i owns `indices[indptr[i]:indptr[i + 1]]`.
    indices : int64 array of shape (total,)
        Neuron ids, ascending within a row.
    width : int
        How many neurons there are.
    """

    width: int

    def to_scipy(self) -> csr_array[np.bool_]:
        """The same as a boolean `scipy.sparse.csr_array` of shape (rows, width)."""
        from scipy.sparse import csr_array

        fires = np.ones(len(self.indices), dtype=np.bool_)
        return csr_array((fires, self.indices, self.indptr), shape=(self.rows, self.width))


@dataclass(frozen=True, eq=False)
class Activity:
    """Counts of firing neurons over a table of inputs.

    Parameters
    ----------
    per_input : int64 array of shape (rows,)
        How many neurons fire on each input.
    per_neuron : int64 array of shape (width,)
        On how many inputs each neuron fires.
    """

    per_input: IdArray
    per_neuron: IdArray

    @property
    def dead(self) -> IdArray:
        """The neurons that fire on none of the inputs, ascending."""
        return np.flatnonzero(self.per_neuron == 0).astype(np.int64)

    @property
    def mean_active(self) -> float:
        """The mean number of neurons that fire on an input."""
        return float(self.per_input.mean())

    @property
    def max_active(self) -> int:
        """The largest number of neurons that fire on one input: k of the class H(n, s, k) on these inputs."""
        return int(self.per_input.max())

    @property
    def fraction(self) -> float:
        """The share of (input, neuron) pairs that are active."""
        return self.mean_active / len(self.per_neuron)

    def __repr__(self) -> str:
        rows, width = len(self.per_input), len(self.per_neuron)
        active = f"mean_active={self.mean_active:g}, max_active={self.max_active}, dead={len(self.dead)}"
        return f"Activity(rows={rows}, width={width}, {active})"


def active_sets(network: TwoLayer, X: AnyArray) -> ActiveSets:
    """The neurons that fire on each row."""
    counts, indices = [np.zeros(1, dtype=np.int64)], []
    for z in preactivation_blocks(network, X):
        fires = network.activation.active(z)
        counts.append(np.count_nonzero(fires, axis=1))
        # Positions in the flat block, less those of the row starts: faster than the pairs of numpy.nonzero.
        indices.append(np.flatnonzero(fires) - np.repeat(network.width * np.arange(len(fires)), counts[-1]))
    return ActiveSets(np.concatenate(counts).cumsum(dtype=np.int64), np.concatenate(indices), network.width)


def activity(network: TwoLayer, X: AnyArray) -> Activity:
    """Counts of firing neurons per row and per neuron."""
    per_input = []
    per_neuron = np.zeros(network.width, dtype=np.int64)
    for z in preactivation_blocks(network, X):
        fires = network.activation.active(z)
        per_input.append(np.count_nonzero(fires, axis=1))
        per_neuron += np.count_nonzero(fires, axis=0)
    return Activity(np.concatenate(per_input).astype(np.int64), per_neuron)


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
    network: TwoLayer,
    k: int | None = None,
    *,
    samples: int = 100_000,
    seed: int | Stream = 0,
    exact_up_to: int = MAX_EXACT,
) -> SparsityReport:
    """Count the neurons that fire on the inputs of the cube {−1, +1}ⁿ.

    Parameters
    ----------
    network : TwoLayer
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
        check_integer("k", k, 0, network.width, "no more than all neurons can fire")
    samples = check_integer("samples", samples, 1)
    exact = network.inputs <= check_integer("exact_up_to", exact_up_to, 0, 30, "2**30 inputs take hours")
    stream = as_stream(seed, "sparsity")
    rows = rows_per_block(network)
    blocks = cube_blocks(network.inputs, rows) if exact else _drawn_blocks(stream, network.inputs, samples, rows)
    largest, witness = -1, np.ones(network.inputs, dtype=np.int8)
    for block in blocks:
        counts = activity(network, block).per_input
        if counts.max() > largest:
            largest, witness = int(counts.max()), block[counts.argmax()].copy()
    return SparsityReport(largest, exact, 2**network.inputs if exact else samples, witness, k)


def _drawn_blocks(stream: Stream, inputs: int, samples: int, rows: int) -> Iterator[SignArray]:
    for start in range(0, samples, rows):
        yield stream.sign_rows(min(rows, samples - start), inputs, start)
