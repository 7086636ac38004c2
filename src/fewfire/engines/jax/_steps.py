"""What JAX compiles: steps of many runs of one shape, and what a checkpoint measures of them.

A step is written for one run and mapped over runs; the slopes are JAX's. How many steps a call makes is no part of what
is compiled. Weights are float32; products have that precision on every device, or a lower one by name.

Parameters of a network are pairs (weights, biases), one per layer, the outputs last. Those of a `TwoLayer` are
((hidden, bias), (output, offset)), with `output` of shape (1, width) and `offset` of shape (1,). Those of many runs
have an axis of runs in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire.engines._run import OPTAX
from fewfire.engines.jax._philox import Pair, integers, permutation, plus, product, words

jax: Any = require("jax", "jax", "the jax engine")
jnp: Any = require("jax.numpy", "jax", "the jax engine")

Array: TypeAlias = Any
"""A JAX array."""

Precision = Literal["float32", "tf32", "bf16"]
"""Of products: float32; what the device takes by default, tf32 on recent GPUs; factors rounded to bfloat16."""

Choice = Literal["replacement", "epochs", "in order", "all"]
"""Which rows a step sees; rows of fresh examples come in their order."""


@dataclass(frozen=True)
class Form:
    """What is fixed when steps are compiled, shapes apart.

    Parameters
    ----------
    loss : str
    choice : "replacement", "epochs", "in order" or "all"
    batch : int
        Rows of a step; of "all" those of the largest table.
    optimiser, momentum : str, float
    precision : "float32", "tf32" or "bf16"
    """

    loss: str
    choice: Choice
    batch: int
    optimiser: str
    momentum: float
    precision: Precision


class Runs(NamedTuple):
    """Of each run what does not change while it trains; every field but the tables has an axis of runs in front.

    Parameters
    ----------
    X : array of shape (tables, rows, inputs), int8 or float32
    y : array of shape (tables, rows)
    table : which of the tables it sees
    rows : how many rows of that
    threshold, ceiling : of its activation
    key, batches, epochs : its key and the numbers of its streams
    """

    X: Array
    y: Array
    table: Array
    rows: Array
    threshold: Array
    ceiling: Array
    key: Pair
    batches: Pair
    epochs: Pair


class Cursor(NamedTuple):
    """Where in their streams and tables the runs of a call begin.

    Parameters
    ----------
    step : steps made before
    position : examples drawn before
    epoch, within : the same as epochs, and examples of the last one
    """

    step: Array
    position: Pair
    epoch: Array
    within: Array


class Trained(NamedTuple):
    """What steps change, of each run.

    Parameters
    ----------
    parameters : pairs (weights, biases)
    memory : the optimiser's
    pairs : neurons that fired on examples of this call
    diverged : the step at which it was no longer finite, or 0
    """

    parameters: Any
    memory: Any
    pairs: Array
    diverged: Array


LOSSES: dict[str, Any] = {
    "hinge": lambda f, y: jnp.where(y * f < 1, 1 - y * f, 0),
    "logistic": lambda f, y: jnp.logaddexp(0, -y * f),
    "square": lambda f, y: (f - y) ** 2 / 2,
    "absolute": lambda f, y: jnp.abs(f - y),
    "cross_entropy": lambda f, y: -jnp.take_along_axis(jax.nn.log_softmax(f), y[:, None].astype(int), axis=1)[:, 0],
}
"""Those of `_dense/losses.py`."""


def transformation(optimiser: str, momentum: float) -> Any:
    """What Optax makes directions of gradients with."""
    optax: Any = require("optax", "jax", "the jax engine")
    if optimiser == "sgd":
        return optax.trace(momentum) if momentum else optax.identity()
    name = {"sign_sgd": "scale_by_sign", "adamw": "scale_by_adam"}.get(optimiser, optimiser.removeprefix(OPTAX))
    try:
        found = getattr(optax, name)()
        found.init, found.update  # noqa: B018
    except (AttributeError, TypeError):
        rule = "must be a transformation that the installed Optax has and that needs no arguments"
        raise invalid("optimiser", rule, optimiser, "write optimiser='optax.scale_by_lion', for example") from None
    return found


def forward(parameters: Any, x: Array, threshold: Array, ceiling: Array, precision: Precision) -> tuple[Array, Array]:
    """Outputs (rows,) or (rows, outputs) of a network on rows (rows, inputs), and how many neurons fired on each."""
    *hidden, (output, offset) = parameters
    times = PRODUCTS[precision]
    fired = jnp.zeros(len(x), jnp.uint32)
    for weights, bias in hidden:
        z = times(x, weights) + bias
        fired += (z > threshold).sum(axis=1, dtype=jnp.uint32)
        # What is not a number stays so; the slope is 0 at every kink.
        x = jnp.where(z <= threshold, 0, jnp.where(z >= ceiling, ceiling, z))
    values = times(x, output) + offset
    return values if len(output) > 1 else values[:, 0], fired


def _narrow(x: Array, weights: Array) -> Array:
    return jnp.matmul(x.astype(jnp.bfloat16), weights.T.astype(jnp.bfloat16), preferred_element_type=jnp.float32)


_bf16 = jax.custom_vjp(_narrow)
_bf16.defvjp(
    lambda x, weights: (_narrow(x, weights), (x, weights)),
    lambda kept, slope: (_narrow(slope, kept[1].T), _narrow(slope.T, kept[0].T)),
)

PRODUCTS: dict[Precision, Any] = {
    "float32": lambda x, weights: jnp.matmul(x, weights.T, precision=jax.lax.Precision.HIGHEST),
    "tf32": lambda x, weights: jnp.matmul(x, weights.T, precision=jax.lax.Precision.DEFAULT),
    "bf16": _bf16,
}
"""x (rows, inputs) times weights (neurons, inputs)."""


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def train(form: Form, state: Trained, runs: Runs, cursor: Cursor, rates: Array, steps: Array) -> Trained:
    """`steps` steps of every run.

    Parameters
    ----------
    rates : array of shape (steps or 1, runs, 3, 4)
        Learning rate, 1 − decay and truncation of hidden weights, biases, output and offset at each step, or at all.
    """

    def mean_loss(parameters: Any, x: Array, y: Array, weight: Array, run: tuple[Array, Array]) -> Any:
        outputs, fired = forward(parameters, x, *run, form.precision)
        loss = (LOSSES[form.loss](outputs, y) * weight).sum()
        return loss, (jnp.isfinite(outputs).all(), fired)

    slopes = jax.vmap(jax.grad(mean_loss, has_aux=True))
    direct = jax.vmap(transformation(form.optimiser, form.momentum).update)

    def step(i: Array, carried: tuple[Trained, Any]) -> tuple[Trained, Any]:
        (parameters, memory, pairs, diverged), order = carried
        rows, order = _rows(form, runs, cursor, i.astype(jnp.uint32), order)
        x = runs.X[runs.table[:, None], rows].astype(jnp.float32)
        y = runs.y[runs.table[:, None], rows]
        seen = rows < runs.rows[:, None] if form.choice == "all" else jnp.ones_like(rows, dtype=bool)
        weight = seen / seen.sum(axis=1, keepdims=True)
        slope, (finite, fired) = slopes(parameters, x, y, weight, (runs.threshold, runs.ceiling))
        now = rates[jnp.minimum(i, len(rates) - 1)]
        leaves, tree = jax.tree.flatten(slope)
        layers = [number % 2 + 2 * (number >= len(leaves) - 2) for number in range(len(leaves))]
        both = zip(layers, leaves, strict=True)
        cut = [jnp.where(jnp.abs(part) <= _like(now[:, 2, layer], part), 0, part) for layer, part in both]
        direction, memory = direct(jax.tree.unflatten(tree, cut), memory, parameters)
        new = [
            _like(now[:, 1, layer], part) * part - _like(now[:, 0, layer], part) * along
            for layer, part, along in zip(layers, jax.tree.leaves(parameters), jax.tree.leaves(direction), strict=True)
        ]
        going = diverged == 0
        pairs += jnp.where(going & finite, (fired * seen).sum(axis=1, dtype=jnp.uint32), 0)
        diverged = jnp.where(going & ~finite, cursor.step + i + 1, diverged)
        return Trained(jax.tree.unflatten(tree, new), memory, pairs, diverged), order

    order: Any = ()
    if form.choice == "epochs":  # none yet
        room = len(runs.table), _epochs_of(form, runs) * runs.X.shape[1]
        order = jnp.uint32(0xFFFFFFFF), jnp.zeros(room, jnp.int32)
    trained: Trained = jax.lax.fori_loop(0, steps, step, (state, order))[0]
    return trained


def _like(factors: Array, part: Array) -> Array:
    """Factors (runs,) in a shape that multiplies one layer of all runs."""
    return factors.reshape(-1, *[1] * (part.ndim - 1))


def _rows(form: Form, runs: Runs, cursor: Cursor, i: Array, order: Any) -> tuple[Array, Any]:
    """The rows (runs, batch) that step i of a call sees, and the permutations of the epoch in which it begins."""
    each = jnp.arange(form.batch)
    if form.choice == "replacement":
        start = plus(cursor.position, i * jnp.uint32(form.batch))
        drawn = jax.vmap(lambda key, stream: words(key, stream, start, form.batch))(runs.key, runs.batches)
        return integers(drawn, runs.rows[:, None].astype(jnp.uint32)), order
    if form.choice == "epochs":
        size = runs.X.shape[1]
        position = cursor.within + i * jnp.uint32(form.batch)
        epoch, within = cursor.epoch + position // size, position % size
        order = jax.lax.cond(order[0] == epoch, lambda: order, lambda: (epoch, _order(form, runs, epoch)))
        return jax.lax.dynamic_slice_in_dim(order[1], within.astype(jnp.int32), form.batch, axis=1), order
    if form.choice == "in order":
        each += i.astype(jnp.int32) * form.batch
    return jnp.broadcast_to(each, (len(runs.table), form.batch)), order


def _epochs_of(form: Form, runs: Runs) -> int:
    """Over how many epochs a batch may reach."""
    rows = int(runs.X.shape[1])
    return (form.batch + rows - 2) // rows + 1


def _order(form: Form, runs: Runs, epoch: Array) -> Array:
    """The permutations of this epoch and those after it that a batch may reach into, next to one another."""
    size = runs.X.shape[1]

    def of_run(key: Pair, stream: Pair, number: Array) -> Array:
        return permutation(words(key, stream, product(number, jnp.uint32(size)), size))

    numbers = [epoch + jnp.uint32(e) for e in range(_epochs_of(form, runs))]
    return jnp.concatenate([jax.vmap(of_run, (0, 0, None))(runs.key, runs.epochs, n) for n in numbers], axis=1)


class Measured(NamedTuple):
    """Sums over the rows of a table, of each run: losses, squared errors, wrong signs, neurons that fired."""

    loss: Array
    squares: Array
    wrong: Array
    fired: Array


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def measure(loss: str, precision: Precision, block: int, blocks: int, parameters: Any, runs: Runs) -> Measured:
    """What the networks do on the rows of their tables, `block` rows at a time."""

    def of_run(parameters: Any, x: Array, y: Array, seen: Array, threshold: Array, ceiling: Array) -> Measured:
        outputs, fired = forward(parameters, x.astype(jnp.float32), threshold, ceiling, precision)
        classes = outputs.ndim > 1
        wrong = outputs.argmax(axis=1) != y if classes else outputs * y <= 0
        of_rows = LOSSES[loss](outputs, y), wrong if classes else (outputs - y) ** 2, wrong, fired
        kinds = jnp.float32, jnp.float32, jnp.uint32, jnp.uint32
        return Measured(*(jnp.where(seen, row, 0).sum(dtype=kind) for row, kind in zip(of_rows, kinds, strict=True)))

    def of_block(start: Array) -> Measured:
        rows = start + jnp.arange(block)
        x, y = (part[runs.table[:, None], rows] for part in (runs.X, runs.y))
        seen = rows < runs.rows[:, None]
        sums: Measured = jax.vmap(of_run)(parameters, x, y, seen, runs.threshold, runs.ceiling)
        return sums

    found: Measured = jax.lax.map(of_block, block * jnp.arange(blocks))
    return Measured(*(part.sum(axis=0, dtype=part.dtype) for part in found))


@partial(jax.jit)
def weigh(parameters: Any, support: Array) -> Array:
    """Of each network ‖hidden‖, ‖output‖, and the weight mass on all inputs and on the support (runs, inputs).

    The mass is that of all paths from an input to an output: the product of the absolute weights of all layers.
    """
    *hidden, (output, _) = parameters
    squares = sum((weights**2).sum(axis=2).sum(axis=1) for weights, _ in hidden)
    mass = jnp.abs(output).sum(axis=1)
    for weights, _ in reversed(hidden):
        mass = (mass[:, :, None] * jnp.abs(weights)).sum(axis=1)
    own = jnp.sqrt((output**2).sum(axis=2).sum(axis=1))
    return jnp.stack([jnp.sqrt(squares), own, mass.sum(axis=1), (mass * support).sum(axis=1)])
