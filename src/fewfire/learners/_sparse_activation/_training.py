"""Training inside H(n, s, k): plain descent under a growing price on neurons beyond the k strongest, then projection.

Minibatch AdamW with a rate that falls along a cosine. To the loss is added

    price · mean over rows of Σ_{j not among the k largest} max(a_j z_j + margin, 0),   a_j = ‖u_j‖,

whose price rises from 0 to its full size over the first 70% of the steps: the network begins dense, where descent finds
its way, and is made to choose. From then on only the k strongest neurons of a row count, as top-k training has it (the
rest still pay), and over the last 20% biases are lowered once per pass over the rows until at most k fire on each
(`silence`): what is returned is a plain ReLU network. Top-k from the start gets stuck more often: the neuron that wins
a row first keeps it. Neurons that fire on no row start again early on (`reseed`). With k = width there is nothing to
pay or to choose, and this is plain training of a dense network.

New parameters of a dead neuron, which without a gradient would stay as it is (Definition 1 sets such neurons apart):

- its weights point from the mean of the rows to one row, drawn in proportion to the size of its error among the rows on
  which fewer than k neurons fire, a row of its own for each neuron: two equal neurons would stay equal, and rounding
  would decide which of them is the stronger; they have the median length of the network's other neurons;
- its bias lets it fire on a share of the rows such that all dead neurons together take up the room that is left;
- its output weights take a small step of least squares towards the errors of the rows on which it fires.

A neuron's weights, bias and output weights may be scaled against each other without changing the function. What does
not change is its preactivation times its reach a_j, by how much it moves the outputs: neurons are ranked by a_j·z_j,
and of Definition 2 (sparse-activations) only the products |u_j|·‖w_j‖ and |u_j|·|b_j| count. Two maps lead into the
class:

- `silence` lowers biases until at most k neurons fire on every row of a table. Where more fire, those that are not
  among the k of largest a_j·z_j have to stop; each neuron is lowered once, by the most that any row needs. One
  pass suffices: biases only fall, so no neuron begins to fire.
- `shrink` scales the weights and bias of a neuron down together until it keeps to W and B, which moves no kink.

Several networks that differ in their weight decay are trained at once, on the same minibatches. Minibatches are drawn
by row and trained on in float32. Steps on all rows draw nothing, and new starts draw rows by their weighted shares, so
the result is a function of the weighted rows. Such steps are in float64, so that the order of sums has no visible
effect: training magnifies a rounding some hundred times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from fewfire._dense.losses import LOSSES, Loss
from fewfire._dense.optimisers import AdamW, cosine
from fewfire._errors import DivergenceError
from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
from fewfire.networks import TwoLayer

SLACK = 1e-6  # by how much of its size a silenced neuron is lowered further: no order of summation makes it fire again
BLOCK = 1 << 20  # preactivations computed at a time
FULL, GATED, PROJECTED = 0.7, 0.7, 0.8
"""Shares of the steps after which the price is full, only the k strongest count, and biases are lowered."""

RESEEDED = (0.1, 0.2, 0.3, 0.4)
"""Shares of the steps after which dead neurons start again. Later ones have too little time to settle."""

AHEAD = 256  # steps whose minibatches are drawn at once
RARE = 0.01  # added to the share of a class, so that the start stays finite
MOST_ROWS = 4096  # rows that new parameters are computed from, where training is on minibatches
LARGEST_SHARE = 0.5  # the largest share of the rows on which a new neuron fires
LEAST = 0.1  # how far beyond its threshold the chosen row is at least, in standard deviations of the rows
TINY = 1e-12
ROUNDING = 1e-6  # of shares: equal weights make it likely that some rows have exactly that share
STEP = 0.05  # the output weights of a new neuron, as a share of those of least squares: many share the same error


@dataclass(frozen=True, eq=False)
class MemberStack:
    """The parameters of several networks of one shape; the parts share `flat`, in which what decays comes first."""

    flat: FloatArray  # (networks, size)
    hidden: FloatArray  # (networks, width, inputs)
    output: FloatArray  # (networks, width, outputs)
    bias: FloatArray  # (networks, width)
    offset: FloatArray  # (networks, outputs)

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
        flat = np.zeros((networks, width * (inputs + outputs + 1) + outputs), dtype=dtype)
        stack = cls.of(flat, inputs, width, outputs)
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
        z: FloatArray = np.matmul(x, self.hidden.transpose(0, 2, 1))
        z += self.bias[:, None, :]
        return z

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
        # Among ties those that come first: at most k may fire, where `top` keeps them all.
        np.put_along_axis(z, np.argpartition(-(z * reach), k - 1, axis=-1)[..., :k], 0.0, axis=-1)
        np.maximum(needed, z.max(axis=1), out=needed)
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


@dataclass(frozen=True, eq=False)
class MemberLoss:
    """`factor` times a loss of scores (networks, rows, outputs), with the targets (rows, outputs) of a table."""

    formula: Loss
    targets: FloatArray
    factor: int = 1

    @property
    def outputs(self) -> int:
        """Scores of a row."""
        return int(self.targets.shape[1])

    def start(self, weights: Float64Array) -> Float64Array:
        """The constant scores (outputs,) at which the weighted loss is least, of classes a little closer together."""
        if self.formula.name == "square":
            return np.average(self.targets, axis=0, weights=weights).astype(np.float64)
        if self.formula.name == "cross_entropy":
            return np.asarray(np.log(weights @ self.targets / weights.sum() + RARE))
        share = float(weights[self.targets[:, 0] > 0].sum() / weights.sum())
        return np.array([np.log((share + RARE) / (1 - share + RARE))])

    def slope(self, scores: FloatArray, rows: Any) -> FloatArray:
        """The derivative by the scores of some rows, of the same shape."""
        return np.asarray(self.factor * self.formula.slope(scores, self.targets[rows]))

    def value(self, scores: AnyArray) -> Float64Array:
        """The loss of every row of the table, shape (networks, rows)."""
        value = self.formula.value(scores, self.targets)
        return np.asarray(self.factor * value.reshape(scores.shape[:-1]), dtype=np.float64)


def squared_loss(labels: Float64Array) -> MemberLoss:
    """(f − y)² of numbers y, shape (rows,)."""
    return MemberLoss(LOSSES["square"], labels.astype(np.float32)[:, None], factor=2)


def class_loss(indices: IdArray, classes: int) -> MemberLoss:
    """Logistic loss of one score for two classes, cross-entropy for more, of the class index of each row."""
    if classes == 2:
        return MemberLoss(LOSSES["logistic"], np.where(indices == 1, 1.0, -1.0).astype(np.float32)[:, None])
    return MemberLoss(LOSSES["cross_entropy"], np.eye(classes, dtype=np.float32)[indices])


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
    """One trained network per weight decay, in float64; at most k of its neurons fire on any row of the table."""
    rows, inputs = table.shape
    dtype = rule.precision
    stack = MemberStack.drawn(len(decays), inputs, rule.width, loss.outputs, stream.child("init"), dtype)
    if rule.intercept:
        stack.offset[:] = loss.start(weights)
    gradient = stack.with_parameters(np.zeros_like(stack.flat))
    batch = rows if rule.batch_size is None else min(rows, rule.batch_size)
    descent = _StackedAdamW(stack, gradient, decays, rule.learning_rate)
    shares = weights.astype(dtype)
    everything, draws = np.arange(rows), stream.child("batches")
    sparse = rule.k < rule.width
    reseeded = {round(share * rule.steps) for share in RESEEDED}
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is reported below
        for step in range(rule.steps):
            if batch < rows and step % AHEAD == 0:
                ahead = draws.integers(rows, (min(AHEAD, rule.steps - step), batch), step * batch)
            part = everything if batch == rows else ahead[step % AHEAD]
            done = (step + 1) / rule.steps
            _gradient(stack, gradient, table[part], loss, part, shares[part], rule, done)
            descent.step(cosine(done))
            shrink(stack, rule.W, rule.B)
            if sparse and step + 1 in reseeded:
                again = reseed(stack, table, loss, weights, rule.k, stream.child(f"reseed {step + 1}"))
                descent.restart(again)
                shrink(stack, rule.W, rule.B)
            if sparse and done >= PROJECTED and (step + 1) % math.ceil(rows / batch) == 0:
                silence(stack, table, rule.k)
            if progress is not None:
                progress(step + 1, rule.steps)
    if not np.isfinite(stack.flat).all():
        text = f"training left the finite numbers at learning_rate = {rule.learning_rate:g}. Remedy: lower it."
        raise DivergenceError(text, step=rule.steps, learning_rate=rule.learning_rate)
    if sparse:
        silence(stack, table, rule.k)
    stack = stack.with_parameters(stack.flat.astype(np.float64))  # in which the bounds hold
    shrink(stack, rule.W, rule.B)
    return stack


class _StackedAdamW:
    """AdamW on all networks of a stack as one vector; their weights, not their biases, decay, each at its own rate."""

    def __init__(self, stack: MemberStack, gradient: MemberStack, decays: Sequence[float], rate: float) -> None:
        flat = stack.flat
        self.descent = AdamW(rate, 0.0).start(flat.size, 0, dtype=flat.dtype)
        self.moments = [stack.with_parameters(part.reshape(flat.shape)) for part in self.descent.state]
        self.vectors = flat.reshape(-1), gradient.flat.reshape(-1)
        self.decayed, self.decays = flat[:, : stack.decayed], np.array(decays)[:, None]

    def restart(self, neurons: AnyArray) -> None:
        """Forget the gradients of some neurons (networks, width); their steps begin as small as those of the others."""
        mean, square = self.moments
        for part, of_square in zip(
            (mean.hidden, mean.output, mean.bias), (square.hidden, square.output, square.bias), strict=True
        ):
            part[neurons] = 0.0
            for index, again in enumerate(neurons):
                if again.any() and not again.all():
                    of_square[index, again] = of_square[index, ~again].mean(axis=0)

    def step(self, factor: float) -> None:
        """Move every network along its gradient, at a share of the learning rate."""
        self.descent.factor = factor
        self.decayed *= 1 - (self.descent.learning_rate * self.decays).astype(self.decayed.dtype)
        self.descent.step(*self.vectors)


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
    z = stack.preactivations(x)
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
            # Weaker outputs also lower the price: d(a_j z_j)/du_j = z_j u_j/a_j, of neurons that fire.
            slope = np.einsum("rbj,rbj->rj", paid, features) / np.maximum(reach, 1e-12)
            gradient.output[:] += slope[:, :, None] * stack.output
    np.matmul(back.transpose(0, 2, 1), x, out=gradient.hidden)
    np.add.reduce(back, axis=1, out=gradient.bias)
    np.add.reduce(errors, axis=1, out=gradient.offset)
    if not rule.intercept:
        gradient.offset[:] = 0.0


def reseed(
    stack: MemberStack, table: FloatArray, loss: MemberLoss, weights: Float64Array, k: int, stream: Stream
) -> AnyArray:
    """Give every neuron that fires on no row of the table new parameters; return which those are, (networks, width)."""
    dead = ~stack.fire_somewhere(table)
    if not dead.any():
        return dead
    rows = np.arange(len(table))
    if stack.flat.dtype == np.float32 and len(table) > MOST_ROWS:
        rows = stream.child("rows").permutation(len(table))[:MOST_ROWS]
    x, weights = table[rows], weights[rows]
    z = stack.preactivations(x)
    errors = loss.slope(stack.scores(z), rows)
    room = np.maximum(k - (z > 0).sum(axis=2), 0)
    distinct, of_row = np.unique(x, axis=0, return_inverse=True)
    for number, ids in enumerate(map(np.flatnonzero, dead)):
        share = float(np.average(room[number], weights=weights)) / max(len(ids), 1)
        missed = np.linalg.norm(errors[number], axis=1) * weights * (room[number] > 0)
        missed = np.bincount(of_row.ravel(), missed, len(distinct))
        found = np.flatnonzero(missed > 0)
        # Drawn without replacement, in proportion to `missed`: the largest of log(u)/missed (Efraimidis and Spirakis).
        keys = np.log1p(-stream.child(f"network {number}").uniform(len(distinct))[found]) / missed[found]
        chosen = found[np.argsort(-keys)[: len(ids)]]
        alive = stack.hidden[number][~dead[number]]
        length = np.median(_norms(alive)) if len(alive) else 1.0
        dead[number, ids[len(chosen) :]] = False
        ids = ids[: len(chosen)]
        if not len(ids):
            continue
        hidden = distinct[chosen] - np.average(x, axis=0, weights=weights).astype(x.dtype)
        hidden *= length / np.maximum(_norms(hidden), TINY)
        along, own = x @ hidden.T, np.einsum("ji,ji->j", distinct[chosen], hidden)
        threshold = _threshold(along, own, weights, min(share, LARGEST_SHARE))
        features = np.maximum(along - threshold, 0)
        weighted = features * weights[:, None]
        power = np.einsum("bj,bj->j", weighted, features)[:, None]
        stack.hidden[number, ids], stack.bias[number, ids] = hidden, -threshold
        stack.output[number, ids] = -STEP * (weighted.T @ errors[number]) / np.maximum(power, TINY)
    return dead


def _threshold(along: FloatArray, own: FloatArray, weights: Float64Array, share: float) -> FloatArray:
    """For each column a number halfway between two rows that almost a share of the rows exceeds, and so does `own`."""
    order = np.argsort(-along, axis=0, kind="stable")
    ranked = np.take_along_axis(along, order, axis=0)
    above = np.cumsum(weights[order], axis=0)
    first = np.argmax(above >= share * (1 - ROUNDING) * above[-1], axis=0)
    columns = np.arange(along.shape[1])
    reached = ranked[first, columns]
    apart = reached + math.sqrt(np.finfo(along.dtype).eps) * np.abs(along).max(axis=0)
    larger = np.count_nonzero(ranked > apart, axis=0)
    between = (reached + ranked[np.maximum(larger - 1, 0), columns]) / 2
    mean = np.average(along, axis=0, weights=weights)
    deviation = np.sqrt(np.average((along - mean) ** 2, axis=0, weights=weights))
    return np.asarray(np.minimum(between, own - LEAST * deviation), along.dtype)


def _norms(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(vectors, axis=1, keepdims=True))
