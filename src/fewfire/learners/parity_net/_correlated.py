"""parities, Theorem 2, carried out: gradient descent on both layers of a network that starts as 0, on D_A.

Step 1 has η = 1 and λ = ½, so it replaces every weight by minus its gradient: good neurons become σ(αuz/n + b),
z = Σ_{j∈A} x_j, with u uniform, hence kinks at every value of z. Where the support is known the step is exact, over the
whole of D_A, for any number of inputs; a sample gives it up to noise. Then both layers descend together, on fresh
minibatches or on those of a sample, and "there exists t ≤ T" is taken at its word: the iterate with the least error on
held-out rows is kept. A run ends where that error is 0, since no later iterate can be better.

The theorem's η = k²/(T√q) for all later steps is far too small to leave the best half-space at sizes that can be run. A
number as `learning_rate` gives the practical rates: they start there and fall to 0 by equal amounts, because the hinge
loss oscillates at a constant rate, in proportion to it. λ is `weight_decay`/2, and at most the k/n of the theorem.

`second_layer="solver"`, the practical mode, stops after step 1, reads off the k inputs with the largest weights, drops
the others and solves the convex second layer: with a sample of thousands the weights off the support are noise, and a
second layer on features that hold it overfits.

The paper's inputs are ±1/√n. On ±1 inputs the first layer's rate is divided by n (see `networks.init.symmetric`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_integer, check_number, check_support
from fewfire.engines import PerLayer, Phase, Run, Schedule, get_engine
from fewfire.networks import init, relevance
from fewfire.theory import parities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._types import AnyArray, Float64Array
    from fewfire.engines import Engine, Result, Source
    from fewfire.networks import TwoLayer

LearningRate: TypeAlias = float | Literal["theorem"]
"""The rate after the first step, which falls to 0; or Theorem 2's, which is constant."""

RECORDS = 100
"""Iterates that are compared, at most."""

HALF_SPACE, NEAR = 0.125, 0.02
"""The best half-space is wrong on an eighth of D_A at k = 3 and on more for larger k
(`theory.parities.halfspace_accuracy`); errors that differ by less than 0.02 count as equal."""


@dataclass(frozen=True, eq=False)
class BestIterate:
    """The iterate that did best on held-out rows, and how it was reached.

    Attributes
    ----------
    initial, first, network : TwoLayer
        At the start, where it is the zero function; after the first step; at the best iterate.
    step : int
        t of the best iterate, the first step included.
    rates : array of shape (steps,)
        η_t after the first step, for the paper's inputs ±1/√n.
    result : Result
        Of the whole run after the first step: its history has the held-out error at every iterate compared.
    """

    initial: TwoLayer
    first: TwoLayer
    network: TwoLayer
    step: int
    rates: Float64Array
    result: Result


def learn_correlated_parity(
    source: Source,
    support: Sequence[int],
    *,
    width: int = 1000,
    steps: int = 1500,
    learning_rate: LearningRate = 0.5,
    weight_decay: float = 0.0,
    batch_size: int = 64,
    held_out: int = 1000,
    seeds: Sequence[int] = (0,),
    engine: str = "auto",
) -> list[BestIterate]:
    """Gradient descent on both layers with fresh examples, the first step exact: one best iterate per seed.

    Parameters
    ----------
    source : Source
        D_A, such as `problems.CorrelatedParity`.
    support : sequence of int
        A, of odd size: the first step is taken over the whole distribution.
    width, steps, batch_size : int
        Neurons; steps T after the first; examples of a step.
    learning_rate : float or "theorem"
    weight_decay : float
        2λ.
    held_out : int
        Rows by which the iterate is chosen; they are no test of it.
    seeds : sequence of int
        Other weights, examples and held-out rows each; the runs are trained side by side.

    Examples
    --------
    >>> import fewfire as ff
    >>> problem = ff.problems.CorrelatedParity(n=20, k=3)
    >>> best = ff.learners.learn_correlated_parity(problem, problem.support, width=300, steps=300)[0]
    >>> best.step <= 300
    True
    """
    members = check_support("support", support, source.inputs)
    n, k = source.inputs, len(members)
    start, trainer = init.symmetric(k), get_engine(engine)
    rates = later_rates(n, k, width, steps, learning_rate)
    decay = regularisation(n, k, weight_decay)
    initial = [start(n, width, Stream(seed, "init")) for seed in seeds]
    first = [population_step(network, members) for network in initial]
    held = [source.sample(held_out, Stream(seed, "held out")) for seed in seeds]

    def run(number: int, length: int, evaluate: int) -> Run:
        phase = later_phase(n, rates[:length], decay, batch_size)
        schedule = Schedule((phase,), evaluate=evaluate, stop_error=0.0)
        X, y = held[number]
        return Run(first[number], schedule, X_test=X, y_test=y, source=source, seed=seeds[number])

    every = max(1, steps // RECORDS)
    results = trainer.train([run(number, steps, every) for number in range(len(seeds))])
    found = best_iterates(trainer, results, lambda number, length: run(number, length, length), first)
    return [
        BestIterate(initial[number], first[number], network, 1 + step, rates, results[number])
        for number, (step, network) in enumerate(found)
    ]


def population_step(network: TwoLayer, support: Sequence[int]) -> TwoLayer:
    """The network of `init.symmetric` after the first step over the whole of D_A, exactly."""
    n, k = network.inputs, len(support)
    signs = np.rint(network.hidden.astype(np.float64) * sqrt(n))
    bias = 1 / (8 * k)
    if np.abs(signs - network.hidden * sqrt(n)).max() > 1e-3 or np.abs(network.bias - bias).max() > 1e-6:
        rule = f"must be a start of init.symmetric({k})"
        raise invalid("network", rule, network, "the step is exact for this start only")
    step = parities.first_step(signs, support, bias)
    u = network.output.astype(np.float64)
    hidden, moved = u[:, None] * step.weights / n, bias + u * step.bias
    return network.with_parameters(
        hidden=hidden.astype(network.dtype),
        bias=moved.astype(network.dtype),
        output=step.output.astype(network.dtype),
    )


def first_phase(n: int) -> Phase:
    """The first step on a sample: rate 1, and a decay that leaves nothing of weights and outputs."""
    decay = PerLayer(hidden=1.0, output=1.0)
    return Phase(1, PerLayer(1 / n, 1.0, 1.0, 0.0), decay, decay="direct", batch_size=None)


def later_phase(n: int, rates: Float64Array, decay: float, batch_size: int | None) -> Phase:
    """The steps after the first: the same rate for both layers and the biases, on ±1 inputs; λ on the layers alone."""
    both, shrink = rates.tolist(), (2 * decay * rates).tolist()
    rate = PerLayer((rates / n).tolist(), both, both, 0.0)
    return Phase(len(rates), rate, PerLayer(hidden=shrink, output=shrink), decay="direct", batch_size=batch_size)


def later_rates(n: int, k: int, width: int, steps: int, learning_rate: LearningRate) -> Float64Array:
    """η_t after the first step, shape (steps,)."""
    steps = check_integer("steps", steps, 1)
    if learning_rate == "theorem":
        return np.full(steps, parities.learning_rates(n, k, check_integer("width", width, 2) // 2, steps).later)
    rate = check_number("learning_rate", learning_rate, 0.0, open_low=True, remedy='or pass "theorem"')
    return rate * (1 - np.arange(steps) / steps)


def regularisation(n: int, k: int, weight_decay: float) -> float:
    """λ of all steps after the first: half of the decay, and at most k/n."""
    return min(check_number("weight_decay", weight_decay, 0.0) / 2, k / n)


def best_iterates(
    engine: Engine, results: Sequence[Result], run: Callable[[int, int], Run], starts: Sequence[TwoLayer] | None = None
) -> list[tuple[int, TwoLayer]]:
    """The step with the least error of each result, the earliest of equals, and the network there.

    Engines keep the last weights only. A run is a pure function of its fields, so it is made again up to the step.

    Parameters
    ----------
    engine : Engine
    results : sequence of Result
    run : callable
        The run with this number up to this step.
    starts : sequence of TwoLayer, optional
        The networks at step 0, where they are candidates.
    """
    chosen = [best_step(result, earliest=1 if starts is None else 0) for result in results]
    networks = [result.network for result in results]
    for number, step in enumerate(chosen):
        if starts is not None and step == 0:
            networks[number] = starts[number]
    again = [number for number, step in enumerate(chosen) if 0 < step < results[number].counters.steps]
    for number, repeated in zip(again, engine.train([run(number, chosen[number]) for number in again]), strict=True):
        networks[number] = repeated.network
    return list(zip(chosen, networks, strict=True))


def best_step(result: Result, earliest: int) -> int:
    """The recorded step with the least held-out error, of equals the first; by the training error without such rows."""
    history = result.history
    error = history.train_error if np.isnan(history.test_error).all() else history.test_error
    late = np.asarray(history.step) >= earliest
    return int(history.step[late][np.argmin(error[late])])


def at_half_space(network: TwoLayer, X: AnyArray, y: AnyArray, k: int) -> bool:
    """Whether descent has stayed where a half-space is as good: too many rows are wrong, and not for noisy labels.

    With noise the parity of the k heaviest inputs is wrong as often as the network that has learned it.

    Parameters
    ----------
    network : TwoLayer
    X, y : ±1 arrays of shape (rows, inputs) and (rows,)
    k : int
    """
    wrong = float(np.mean((network(X) > 0) != (y > 0)))
    agrees = float(np.mean(X[:, list(relevance(network).largest(k))].prod(axis=1) == y))
    return wrong > HALF_SPACE - NEAR and abs(wrong - min(agrees, 1 - agrees)) > NEAR
