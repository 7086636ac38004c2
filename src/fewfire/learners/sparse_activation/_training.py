"""Training inside H(n, s, k): plain descent under a growing price on neurons beyond the k strongest, then projection.

Minibatch AdamW with a rate that falls along a cosine. To the loss is added

    price · mean over rows of Σ_{j not among the k largest} max(a_j z_j + margin, 0),   a_j = ‖u_j‖,

whose price rises from 0 to its full size over the first 70% of the steps: the network begins dense, where descent finds
its way, and is made to choose. From then on only the k strongest neurons of a row count, as top-k training has it (the
rest still pay), and over the last 20% biases are lowered once per pass over the rows until at most k fire on each
(`_stack.silence`): what is returned is a plain ReLU network. Top-k from the start gets stuck more often: whoever wins a
row first keeps it. With k = width there is nothing to pay or to choose, and this is plain training of a dense network.

Several networks that differ in their weight decay are trained at once, on the same minibatches. Minibatches are drawn
by row and trained on in float32. Steps on all rows draw nothing, so the result is a function of the weighted rows. They
are in float64, so that the order of sums has no visible effect: training magnifies a rounding some hundred times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import DivergenceError
from fewfire.learners.sparse_activation._stack import MemberStack, shrink, silence, top
from fewfire.tabular import AdamW
from fewfire.tabular._kernels import kernels, twins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._random import Stream
    from fewfire._types import Float64Array, FloatArray
    from fewfire.learners.sparse_activation._losses import MemberLoss

FULL, GATED, PROJECTED = 0.7, 0.7, 0.8
"""Shares of the steps after which the price is full, only the k strongest count, and biases are lowered."""

AHEAD = 256
"""Steps whose minibatches are drawn at once."""

LAST_RATE = 0.01
"""The last learning rate, as a share of the first."""


@dataclass(frozen=True)
class TrainingRule:
    """How networks are trained; see `SparseActivationRegressor` for what the entries mean."""

    width: int
    k: int
    W: float | None
    B: float | None
    learning_rate: float
    steps: int
    batch_size: int | None
    price: float
    margin: float
    intercept: bool

    @property
    def precision(self) -> type[np.floating[Any]]:
        """What is computed in."""
        return np.float64 if self.batch_size is None else np.float32


def train_members(
    table: FloatArray,
    loss: MemberLoss,
    weights: Float64Array,
    decays: Sequence[float],
    rule: TrainingRule,
    stream: Stream,
    progress: Callable[[int, int], object] | None = None,
) -> MemberStack:
    """One trained network per weight decay; at most k of its neurons fire on any row of the table.

    Parameters
    ----------
    table : array of shape (rows, inputs), of the rule's precision
    loss : MemberLoss
        Of the labels of these rows.
    weights : array of shape (rows,)
        Of the rows, with mean 1.
    decays : sequence of float
    rule : TrainingRule
    stream : Stream
        Of the start and of the minibatches.
    progress : callable (done, total), optional
    """
    rows, inputs = table.shape
    dtype = rule.precision
    stack = MemberStack.drawn(len(decays), inputs, rule.width, loss.outputs, stream.child("init"), dtype)
    if rule.intercept:
        stack.offset[:] = loss.start(weights)
    gradient = MemberStack.zeros(len(decays), inputs, rule.width, loss.outputs, dtype)
    batch = rows if rule.batch_size is None else min(rows, rule.batch_size)
    descent = _StackedAdamW(stack, gradient, decays)
    pace = weights.astype(dtype)
    everything, draws = np.arange(rows), stream.child("batches")
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is told below
        for step in range(rule.steps):
            if batch < rows and step % AHEAD == 0:
                ahead = draws.integers(rows, (min(AHEAD, rule.steps - step), batch), step * batch)
            part = everything if batch == rows else ahead[step % AHEAD]
            done = (step + 1) / rule.steps
            _gradient(stack, gradient, table[part], loss, part, pace[part], rule, done)
            descent.step(rule.learning_rate * _cosine(done))
            shrink(stack, rule.W, rule.B)
            if rule.k < rule.width and done >= PROJECTED and (step + 1) % math.ceil(rows / batch) == 0:
                silence(stack, table, rule.k)
            if progress is not None:
                progress(step + 1, rule.steps)
    if not np.isfinite(stack.flat).all():
        text = f"training left the finite numbers at learning_rate = {rule.learning_rate:g}. Remedy: lower it."
        raise DivergenceError(text, step=rule.steps, learning_rate=rule.learning_rate)
    if rule.k < rule.width:
        silence(stack, table, rule.k)
    shrink(stack, rule.W, rule.B)
    return stack


class _StackedAdamW:
    """AdamW (`fewfire.tabular.AdamW`) on all networks of a stack, each with its decay, which biases are free of."""

    betas = AdamW().betas

    def __init__(self, stack: MemberStack, gradient: MemberStack, decays: Sequence[float]) -> None:
        mean, square = np.zeros_like(stack.flat), np.zeros_like(stack.flat)
        matrices, biases = slice(0, stack.decayed), slice(stack.decayed, None)
        self.parts = [
            (shrinks, [array[place, part] for array in (stack.flat, gradient.flat, mean, square)])
            for place, decay in enumerate(decays)
            for shrinks, part in ((decay, matrices), (0.0, biases))
        ]
        # The C++ kernel is in float32; the NumPy code takes either precision.
        self.update = (kernels() if stack.flat.dtype == np.float32 else twins()).adamw_step
        self.steps = 0

    def step(self, learning_rate: float) -> None:
        """Move every network along its gradient."""
        self.steps += 1
        beta1, beta2 = self.betas
        # Both means start at 0; dividing them by 1 − βᵗ corrects that, here inside rate and tiny.
        of_square = math.sqrt(1 - beta2**self.steps)
        rate, tiny = learning_rate * of_square / (1 - beta1**self.steps), 1e-8 * of_square
        for decay, arrays in self.parts:
            self.update(*arrays, rate, learning_rate * decay, beta1, beta2, tiny)


def _gradient(
    stack: MemberStack,
    gradient: MemberStack,
    x: FloatArray,
    loss: MemberLoss,
    rows: object,
    weights: FloatArray,
    rule: TrainingRule,
    done: float,
) -> None:
    """Write the gradient of loss and price at a minibatch x (batch, inputs) into `gradient`."""
    z = np.matmul(x, stack.hidden.transpose(0, 2, 1))
    z += stack.bias[:, None, :]
    fires = z > 0
    sparse = rule.k < rule.width
    if sparse:
        reach = stack.reach
        ranks = z * reach[:, None, :]
        strong = top(ranks, rule.k)
        if done > GATED:
            fires &= strong
    gate = fires.astype(z.dtype)
    features = z * gate
    scores = np.matmul(features, stack.output) + stack.offset[:, None, :]
    errors = loss.slope(scores, rows) * (weights / len(x))[:, None]
    # A product of one column and one row is dear as a matrix product.
    backward = np.multiply if loss.outputs == 1 else np.matmul
    back = backward(errors, stack.output.transpose(0, 2, 1))
    back *= gate
    gradient.output[:] = np.matmul(features.transpose(0, 2, 1), errors)
    if sparse:
        price = rule.price * min(1.0, done / FULL) / len(x)
        over = (ranks > -rule.margin) & ~strong
        paid = over * (price * weights)[:, None]
        back += paid * reach[:, None, :]
        if done <= GATED:
            # The price may also be met by weaker outputs: d(a_j z_j)/du_j = z_j u_j/a_j, of neurons that fire.
            slope = np.einsum("rbj,rbj->rj", paid, features) / np.maximum(reach, 1e-12)
            gradient.output[:] += slope[:, :, None] * stack.output
    np.matmul(back.transpose(0, 2, 1), x, out=gradient.hidden)
    np.add.reduce(back, axis=1, out=gradient.bias)
    np.add.reduce(errors, axis=1, out=gradient.offset)
    if not rule.intercept:
        gradient.offset[:] = 0.0


def _cosine(done: float) -> float:
    """The learning rate after a share of the steps, as a share of the first."""
    return LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * done))
