"""parities, Theorem 2, carried out: gradient descent on both layers of a network that starts as 0, on D_A.

Step 1 has η = 1 and λ = ½, so it replaces every weight by minus its gradient. Where the support is known it is taken
exactly, over the whole of D_A; a sample gives it up to noise. Then both layers descend together, and the iterate with
the least validation error is kept. The theorem's η = k²/(T√q) is far too small to leave the best half-space at sizes
that can be run; a number as `learning_rate` gives practical rates, which start there and fall to 0 by equal amounts.

`learn_correlated_parity` does so with fresh examples, `CorrelatedParityClassifier` on a sample, and again from another
start where descent stays at the best half-space. Its practical mode, `second_layer="solver"`, stops after step 1, keeps
the k inputs with the largest weights, and solves the convex second layer.

The paper's inputs are ±1/√n. On ±1 inputs the first layer's rate is divided by n (see `networks.init.symmetric`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import sqrt
from operator import itemgetter
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array, IdArray
from fewfire._validate import check_choice, check_integer, check_number, check_support
from fewfire.engines import MEASURED_ROWS, Engine, PerLayer, Phase, Result, Run, Schedule, get_engine
from fewfire.engines._run import Source
from fewfire.learners._parity_net import ParityNetwork, SignedRows
from fewfire.learners._signs import Binarize
from fewfire.networks import TwoLayer, init, relevance
from fewfire.papers import parities
from fewfire.papers._second_layer import SecondLayer, solve_output

__all__ = ["BestIterate", "CorrelatedParityClassifier", "good_mask", "learn_correlated_parity", "population_step"]

LearningRate: TypeAlias = float | Literal["theorem"]
"""The rate after the first step, which falls to 0; or Theorem 2's, which is constant."""

RECORDS, VALIDATION_ROWS = 100, 1000
"""Iterates that are compared, at most, and on how many rows where examples are fresh."""

HALF_SPACE, NEAR = 0.125, 0.02
"""The best half-space is wrong on an eighth of D_A at k = 3 and on more for larger k
(`halfspace_accuracy`); errors that differ by less than 0.02 count as equal."""


@dataclass(frozen=True, eq=False)
class BestIterate:
    """The iterate with the least validation error, and how it was reached.

    Attributes
    ----------
    initial, first, network : TwoLayer
        At the start, where it is the zero function; after the first step; at the best iterate.
    step : int
        t of the best iterate, the first step included.
    rates : array of shape (steps,)
        η_t after the first step, for the paper's inputs ±1/√n.
    result : Result
        Of the whole run after the first step: its history has the validation error at every iterate compared.
    """

    initial: TwoLayer
    first: TwoLayer
    network: TwoLayer
    step: int
    rates: Float64Array
    result: Result

    def error(self, source: Source, rows: int, seed: int) -> float:
        """The share of so many test rows of this seed that the best iterate gets wrong."""
        return _error(self.network, *source.sample(rows, Stream(seed, "test")))


def learn_correlated_parity(
    source: Source,
    support: Sequence[int],
    *,
    width: int = 1000,
    steps: int = 1500,
    learning_rate: LearningRate = 0.5,
    batch_size: int = 64,
    seeds: Sequence[int] = (0,),
) -> list[BestIterate]:
    """Gradient descent on both layers with fresh examples, λ = 0, the first step exact: one best iterate per seed.

    Parameters
    ----------
    source : Source
        D_A, such as `problems.CorrelatedParity`.
    support : sequence of int
        A, of odd size: the first step is taken over the whole distribution.
    width, steps, batch_size : int
        Neurons; steps T after the first; examples of a step.
    learning_rate : float or "theorem"
    seeds : sequence of int
        Other weights, examples and validation rows each; the runs are trained concurrently.

    Examples
    --------
    >>> from fewfire.papers.parities.algorithms import learn_correlated_parity
    >>> from fewfire.problems import CorrelatedParity
    >>> problem = CorrelatedParity(n=20, k=3)
    >>> best = learn_correlated_parity(problem, problem.support, width=300, steps=300)[0]
    >>> best.step <= 300
    True
    """
    members = check_support("support", support, source.inputs)
    n, k = source.inputs, len(members)
    start, trainer = init.symmetric(k), get_engine()
    rates = later_rates(n, k, width, steps, learning_rate)
    initial = [start(n, width, Stream(seed, "init")) for seed in seeds]
    first = [population_step(network, members) for network in initial]
    validation = [source.sample(VALIDATION_ROWS, Stream(seed, "held out")) for seed in seeds]

    def run(number: int, length: int, evaluate: int) -> Run:
        phase = later_phase(n, rates[:length], 0.0, batch_size)
        schedule = Schedule((phase,), evaluate=evaluate, stop_error=0.0)
        X, y = validation[number]
        return Run(first[number], schedule, X_test=X, y_test=y, source=source, seed=seeds[number])

    every = max(1, steps // RECORDS)
    results = trainer.train([run(number, steps, every) for number in range(len(seeds))])
    found = best_iterates(trainer, results, lambda number, length: run(number, length, length), first)
    return [
        BestIterate(initial[number], first[number], network, 1 + step, rates, results[number])
        for number, (step, network) in enumerate(found)
    ]


@dataclass(eq=False, repr=False)
class CorrelatedParityClassifier(ParityNetwork):
    """Theorem 2 as an estimator: the first step on the whole sample, then the second layer, or descent on both.

    Columns, attributes, `predict_proba` and `explain` are those of `ParityNetClassifier`, but that `lucky_neurons_` are
    the good neurons of Lemma 7, whose initial weights on `support_` add up to 0.

    Parameters
    ----------
    k : int
        Bits of the parity, odd.
    width : int
        Hidden neurons, even.
    second_layer : {"solver", "descent"}
        Solve the convex second layer on the `k` inputs that the first step has singled out, or descend on both layers
        for `max_steps` more steps and keep the iterate with the least validation error.
    learning_rate : float or "theorem"
        Of "descent", from where it falls to 0; "theorem" is Theorem 2's own, which is constant, and too small for
        networks that can be run. Smaller rates than 0.5 stay at the best half-space more often.
    weight_decay : float
        2λ, λ at most k/n. A parity needs large outputs, which a λ of 0.005 does not let grow.
    batch_size, max_steps : int
        Descent ends before `max_steps` where no row that chooses the iterate is wrong. 1500 steps are too few at k = 5.
    restarts : int
        How often at most descent begins again, with other weights and minibatches decided by `random_state`, where the
        best iterate is no better than a half-space. If none of the starts leaves it, the best is kept and a
        `ConvergenceWarning` says so.
    strict : bool
        Refuse k that are even or below 3.
    validation_fraction : float
        Share on which the iterate is chosen and `predict_proba` fitted; descent ends where none of it is wrong. With 0
        the first 10,000 training rows choose, and all fit probabilities, which are then too sure.
    binarize, engine, random_state, verbose
        As of `ParityNetClassifier`.

    Attributes
    ----------
    best_step_ : int
        The step whose weights `network_` has.
    restarts_ : int
        Restarts that were made.

    Examples
    --------
    >>> from fewfire.papers.parities.algorithms import CorrelatedParityClassifier
    >>> from fewfire.problems import CorrelatedParity
    >>> X, y = CorrelatedParity(n=101, k=3, support=[4, 11, 60]).sample(4000, seed=0)
    >>> CorrelatedParityClassifier(k=3, width=200, random_state=0).fit(X, y).support_
    (4, 11, 60)
    """

    k: int
    _: KW_ONLY
    width: int = 1000
    second_layer: SecondLayer = "solver"
    learning_rate: LearningRate = 0.5
    weight_decay: float = 0.0
    batch_size: int = 64
    max_steps: int = 5000
    restarts: int = 3
    strict: bool = True
    validation_fraction: float = 0.0
    binarize: Binarize | None = None
    engine: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    def _train(self, rows: SignedRows) -> tuple[TwoLayer, TwoLayer, Result]:
        n = rows.inputs
        k, restarts = check_integer("k", self.k, 1, n), check_integer("restarts", self.restarts, 0)
        check_integer("max_steps", self.max_steps, 1)
        check_choice("second_layer", self.second_layer, get_args(SecondLayer))
        if self.second_layer == "descent":
            return self._descend_again(rows, k, restarts)
        initial = init.symmetric(k, strict=self.strict)(n, self.width, Stream(rows.seed, "init"))
        result = rows.train(initial, Schedule((first_phase(n),)))
        moved = result.network.hidden
        heaviest = np.argsort(-np.abs(moved).sum(axis=0, dtype=np.float64), kind="stable")[:k]
        hidden = np.zeros_like(moved)
        hidden[:, heaviest] = moved[:, heaviest]
        on_support = result.network.with_parameters(hidden=hidden)
        network = solve_output(on_support, rows.X, rows.y, np.ones(self.width, dtype=bool))
        self.best_step_, self.restarts_ = 1, 0
        return initial, network, result

    def _descend_again(self, rows: SignedRows, k: int, restarts: int) -> tuple[TwoLayer, TwoLayer, Result]:
        """Descent from one start after another, until one leaves the best half-space; the one with fewest errors."""
        held_out = rows.validation is not None
        X, y = rows.validation or (rows.X[:MEASURED_ROWS], rows.y[:MEASURED_ROWS])
        rows = replace(rows, validation=(X, y))
        found: list[tuple[float, TwoLayer, TwoLayer, Result, int]] = []
        stuck = True
        while stuck and len(found) <= restarts:
            seed = int(Stream(rows.seed, f"restart {len(found)}").integers(2**31 - 1, 1)[0]) if found else rows.seed
            initial, network, result, step = self._descend(replace(rows, seed=seed), k)
            found.append((_error(network, X, y), initial, network, result, step))
            stuck = at_half_space(network, X, y, k)
        error, initial, network, result, step = min(found, key=itemgetter(0))
        if stuck:
            text = (
                f"of {len(found)} starts none has left the best half-space: the best is right on {1 - error:.1%} of "
                "the rows that choose the iterate. Remedy: raise max_steps, width, learning_rate or restarts, or pass "
                'second_layer="solver".'
            )
            warnings.warn(text, ConvergenceWarning, stacklevel=5)  # where fit was called
        if not held_out:  # the rows that have chosen are no test
            history = replace(result.history, test_error=np.full(len(result.history.step), np.nan))
            result = replace(result, history=history)
        self.best_step_, self.restarts_ = step, len(found) - 1
        return initial, network, result

    def _descend(self, rows: SignedRows, k: int) -> tuple[TwoLayer, TwoLayer, Result, int]:
        """The first step and the descent after it, up to the iterate with the least validation error."""
        n, steps = rows.inputs, self.max_steps
        initial = init.symmetric(k, strict=self.strict)(n, self.width, Stream(rows.seed, "init"))
        rates = later_rates(n, k, self.width, steps, self.learning_rate)
        decay = regularisation(n, k, self.weight_decay)

        def run(_: int, length: int, evaluate: int | None = None) -> Run:
            later = (later_phase(n, rates[: length - 1], decay, self.batch_size),) if length > 1 else ()
            return rows.run(initial, Schedule((first_phase(n), *later), evaluate=evaluate or length, stop_error=0.0))

        whole = run(0, 1 + steps, max(1, steps // RECORDS))
        result = rows.engine.train([whole], progress=rows.progress)[0]
        ((step, network),) = best_iterates(rows.engine, [result], run)
        return initial, network, result, step

    def _lucky(self, initial: TwoLayer, support: tuple[int, ...]) -> IdArray:
        return np.flatnonzero(good_mask(initial, support))

    def _kept(self) -> str:
        return "" if self.best_step_ == self.n_iter_ else f", the weights of step {self.best_step_}"


def _error(network: TwoLayer, X: AnyArray, y: AnyArray) -> float:
    return float(np.mean((network(X) > 0) != (y > 0)))


def signs_of(start: TwoLayer) -> Float64Array:
    """√n times the weights of a start of `init.symmetric`: −1, 0 and 1, shape (width, n)."""
    return np.rint(start.hidden.astype(np.float64) * sqrt(start.inputs))


def good_mask(initial: TwoLayer, support: Sequence[int]) -> NDArray[np.bool_]:
    """The good neurons of a start of `init.symmetric` (Lemma 7), shape (width,)."""
    return np.asarray(parities.good_start(signs_of(initial), support, float(initial.bias[0])), dtype=bool)


def population_step(network: TwoLayer, support: Sequence[int]) -> TwoLayer:
    """The network of `init.symmetric` after the first step over the whole of D_A, exactly."""
    n, k, signs = network.inputs, len(support), signs_of(network)
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
    """The step with the least error of each result, the earliest of equals, and the network trained again up to it."""
    chosen = [best_step(result, earliest=1 if starts is None else 0) for result in results]
    networks = [starts[i] if starts and not chosen[i] else result.network for i, result in enumerate(results)]
    again = [i for i, step in enumerate(chosen) if 0 < step < results[i].counters.steps]
    for i, repeated in zip(again, engine.train([run(i, chosen[i]) for i in again]), strict=True):
        networks[i] = repeated.network
    return list(zip(chosen, networks, strict=True))


def best_step(result: Result, earliest: int) -> int:
    """The recorded step with the least validation error, of equals the first; by the training error without any."""
    history = result.history
    error = history.train_error if np.isnan(history.test_error).all() else history.test_error
    late = np.asarray(history.step) >= earliest
    return int(history.step[late][np.argmin(error[late])])


def at_half_space(network: TwoLayer, X: AnyArray, y: AnyArray, k: int) -> bool:
    """Whether descent has stayed where a half-space is as good: too many rows are wrong, and not for noisy labels."""
    wrong = _error(network, X, y)
    # With noise the parity of the k heaviest inputs is wrong as often as the network that has learned it.
    agrees = float(np.mean(X[:, list(relevance(network).largest(k))].prod(axis=1) == y))
    return wrong > HALF_SPACE - NEAR and abs(wrong - min(agrees, 1 - agrees)) > NEAR
