"""Several two-layer networks side by side in one array: what is trained, and how it is brought into the class.

A neuron's weights, bias and output weights may be scaled against each other without changing the function. What does
not change is its preactivation times its reach a_j = ‖u_j‖, by how much it moves the outputs: neurons are ranked by
a_j·z_j, and of Definition 2 (sparse-activations) only the products |u_j|·‖w_j‖ and |u_j|·|b_j| count. Two maps lead
into the class:

- `silence` lowers biases until at most k neurons fire on every row of a table. Where more fire, those that are not
  among the k of largest a_j·z_j have to stop; each neuron is lowered once, by the most that any row needs. One
  pass suffices: biases only fall, so no neuron begins to fire.
- `shrink` scales the weights and bias of a neuron down together until it keeps to W and B, which moves no kink.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.networks import TwoLayer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import DTypeLike

    from fewfire._random import Stream
    from fewfire._types import AnyArray, FloatArray

SLACK = 1e-6
"""By how much of its size a silenced neuron is lowered further: no order of summation makes it fire again."""

BLOCK = 1 << 20
"""Preactivations computed at a time."""


@dataclass(frozen=True, eq=False)
class MemberStack:
    """The parameters of several networks of one shape; the parts share `flat`, in which what decays comes first."""

    flat: FloatArray  # (networks, size)
    hidden: FloatArray  # (networks, width, inputs)
    output: FloatArray  # (networks, width, outputs)
    bias: FloatArray  # (networks, width)
    offset: FloatArray  # (networks, outputs)

    @classmethod
    def zeros(cls, networks: int, inputs: int, width: int, outputs: int, dtype: DTypeLike = np.float32) -> MemberStack:
        """Networks whose parameters are all 0."""
        flat = np.zeros((networks, width * (inputs + outputs + 1) + outputs), dtype=dtype)
        return cls.of(flat, inputs, width, outputs)

    @classmethod
    def of(cls, flat: FloatArray, inputs: int, width: int, outputs: int) -> MemberStack:
        """Networks whose parameters are in an array of shape (networks, size)."""
        networks, sizes = len(flat), np.cumsum([width * inputs, width * outputs, width])
        hidden, output, bias, offset = np.split(flat, sizes, axis=1)
        shapes = (networks, width, inputs), (networks, width, outputs)
        return cls(flat, hidden.reshape(shapes[0]), output.reshape(shapes[1]), bias, offset)

    @classmethod
    def drawn(
        cls, networks: int, inputs: int, width: int, outputs: int, stream: Stream, dtype: DTypeLike = np.float32
    ) -> MemberStack:
        """The same start for every network: normal weights of variance 1/inputs and 1/width, biases 0."""
        stack = cls.zeros(networks, inputs, width, outputs, dtype)
        stack.hidden[:] = stream.child("hidden").normal((width, inputs)) / np.sqrt(inputs)
        stack.output[:] = stream.child("output").normal((width, outputs)) / np.sqrt(width)
        return stack

    def with_parameters(self, flat: FloatArray) -> MemberStack:
        """Networks of this shape with the parameters of another array."""
        return self.of(flat, self.hidden.shape[2], *self.output.shape[1:])

    @property
    def decayed(self) -> int:
        """How many of the leading parameters of a network are weights."""
        return int(np.prod(self.hidden.shape[1:]) + np.prod(self.output.shape[1:]))

    @property
    def reach(self) -> FloatArray:
        """‖u_j‖ of every neuron, shape (networks, width)."""
        if self.output.shape[2] == 1:
            return np.abs(self.output[:, :, 0])
        return np.asarray(np.sqrt(np.einsum("rjo,rjo->rj", self.output, self.output)))

    def preactivations(self, x: FloatArray) -> FloatArray:
        """⟨w_j, x⟩ + b_j of all networks on rows (rows, inputs), shape (networks, rows, width)."""
        return np.asarray(np.matmul(x, self.hidden.transpose(0, 2, 1)) + self.bias[:, None, :])

    def scores(self, z: FloatArray) -> FloatArray:
        """The outputs of preactivations (networks, rows, width), shape (networks, rows, outputs)."""
        return np.asarray(np.matmul(np.maximum(z, 0), self.output) + self.offset[:, None, :])

    def blocks(self, table: FloatArray) -> Iterator[FloatArray]:
        """The rows of a table, some at a time."""
        rows = max(1, BLOCK // self.bias.size)
        return (table[start : start + rows] for start in range(0, len(table), rows))

    def fire_somewhere(self, table: FloatArray) -> AnyArray:
        """Which neurons fire on any row of a table (rows, inputs), shape (networks, width)."""
        fired = np.zeros(self.bias.shape, dtype=bool)
        for part in self.blocks(table):
            fired |= (self.preactivations(part) > 0).any(axis=1)
        return fired

    def network(self, index: int) -> TwoLayer:
        """One of them in float64, in the form with max_o |u_jo| = 1 for every neuron that counts.

        Output weights of one output are a vector. In this form W is the largest ‖w_j‖ and B the largest |b_j|; neurons
        without output weights become 0.
        """
        hidden, bias, output = (part[index].astype(np.float64) for part in (self.hidden, self.bias, self.output))
        size = np.abs(output).max(axis=1)
        output /= np.where(size > 0, size, 1.0)[:, None]
        offset = self.offset[index].astype(np.float64)
        single = output.shape[1] == 1
        return TwoLayer(
            hidden * size[:, None],
            bias * size,
            output[:, 0] if single else output,
            float(offset[0]) if single else offset,
        )


def top(ranks: FloatArray, k: int) -> AnyArray:
    """Which entries of the last axis are among its k largest; ties at the border are all kept."""
    width = ranks.shape[-1]
    if k == 1:
        return np.asarray(ranks >= ranks.max(axis=-1, keepdims=True))
    return np.asarray(ranks >= np.partition(ranks, width - k, axis=-1)[..., width - k, None])


def silence(stack: MemberStack, table: FloatArray, k: int) -> None:
    """Lower biases, in place, until at most k neurons of each network fire on every row of the table (rows, inputs)."""
    reach = stack.reach[:, None, :]
    needed = np.zeros_like(stack.bias)
    for part in stack.blocks(table):
        z = stack.preactivations(part)
        kept = _exactly(z * reach, k)
        np.maximum(needed, np.where(kept, 0.0, z).max(axis=1), out=needed)
    largest = float(np.abs(table).max(initial=1.0))
    size = np.abs(stack.bias) + largest * np.abs(stack.hidden).sum(axis=2)
    stack.bias[:] -= np.where(needed > 0, needed + SLACK * size, 0.0)


def shrink(stack: MemberStack, W: float | None, B: float | None) -> None:
    """Scale neurons down, in place, until |u_jo|·‖w_j‖ ≤ W and |u_jo|·|b_j| ≤ B for all outputs o."""
    if W is None and B is None:
        return
    size = np.abs(stack.output).max(axis=2)
    factor = np.ones_like(size)
    norms = np.sqrt(np.einsum("rji,rji->rj", stack.hidden, stack.hidden))
    for bound, found in ((W, size * norms), (B, size * np.abs(stack.bias))):
        if bound is not None:
            most = bound * (1 - SLACK)  # so that rounding, in float64, does not exceed the bound
            np.minimum(factor, np.divide(most, found, out=np.ones_like(found), where=found > most), out=factor)
    stack.hidden[:] *= factor[:, :, None]
    stack.bias[:] *= factor


def _exactly(ranks: FloatArray, k: int) -> AnyArray:
    """As `top`, but exactly k of each row: among ties those that come first."""
    order = np.argpartition(-ranks, k - 1, axis=-1)[..., :k]
    kept = np.zeros(ranks.shape, dtype=bool)
    np.put_along_axis(kept, order, True, axis=-1)
    return kept
