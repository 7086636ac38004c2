"""What an engine takes: independent runs, each a pure function of its fields, and what a run does at each step.

A run is *described*: its start is an initialiser, a width and a stream, its examples are a problem, a number of rows
and a stream. A description weighs a few hundred bytes and is drawn when its turn comes, by the engine itself where it
can (on its device), else by `Run.drawn`. Arrays are the other way to describe a run: a `TwoLayer`, X and y.

Its schedule is made of phases of constant or listed rates, per layer. Update of a parameter θ of one layer at one step,
with its rate η, decay and truncation γ:
    θ ← (1 − decay) θ − η · trunc(∇θ, γ)
where trunc zeroes entries of magnitude at most γ (pareto, B.3) and decay is η·weight_decay
("coupled": PyTorch's SGD, pareto C.1) or weight_decay itself ("direct": pareto 3.2.1). The
regulariser λ‖θ‖² of parities is coupled decay with weight_decay = 2λ. Optimisers but plain SGD use another direction
instead of trunc(∇θ, γ), made of all of these up to now; decay stays apart from it.

Which examples a step sees is one law for all engines. Step t (from 0) of a run with batch size B reads words
tB … tB + B − 1 of its stream "batches": with replacement, example ⌊word·m / 2³²⌋; by epochs, position p = tB + j of the
endless concatenation of permutations, the e-th being the stable order of words em … em + m − 1 of the child stream
"epochs". Online, step t sees rows tB … tB + B − 1 of the child stream "online".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import numpy as np

from fewfire._dense.losses import LossName
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_choice, check_inputs, check_integer, check_labels, check_number, check_support
from fewfire.engines._gradients import LOSSES
from fewfire.networks import Mlp, TwoLayer, init
from fewfire.networks._two_layer import check_single_output

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
    from fewfire.engines._protocol import Engine
    from fewfire.networks.init._base import Initialiser

Value: TypeAlias = float | Sequence[float]
"""One number for all steps of a phase, or one number per step."""

Decay = Literal["coupled", "direct"]
Sampling = Literal["replacement", "epochs"]

OPTIMISERS = ("sgd", "sign_sgd", "adamw")
OPTAX = "optax."
"""What names of Optax's own transformations begin with."""

LAYERS = ("hidden", "bias", "output", "offset")


@dataclass(frozen=True)
class PerLayer:
    """A value for each of the four parameter groups of `TwoLayer`; all hidden layers of an `Mlp` share theirs."""

    hidden: Value = 0.0
    bias: Value = 0.0
    output: Value = 0.0
    offset: Value = 0.0


@dataclass(frozen=True)
class Phase:
    """A stretch of steps under one rule.

    Parameters
    ----------
    steps : int
    learning_rate, weight_decay, truncation : float, sequence of `steps` floats, or PerLayer of these
    decay : "coupled" or "direct"
        Whether weight_decay is multiplied by the learning rate.
    batch_size : int or None
        Examples per step; None is the whole training set (gradient descent).
    epochs : int, optional
        Instead of steps: as many as see so many times the rows of the training set. Batches are then no larger than
        that set.

    Examples
    --------
    >>> from fewfire.engines import PerLayer, Phase
    >>> Phase(1000, learning_rate=PerLayer(hidden=0.1, bias=0.1), weight_decay=0.01).steps  # only the first layer moves
    1000
    """

    steps: int = 0
    learning_rate: Value | PerLayer = 0.1
    weight_decay: Value | PerLayer = 0.0
    truncation: Value | PerLayer = 0.0
    decay: Decay = "coupled"
    batch_size: int | None = 32
    epochs: int | None = None

    def __post_init__(self) -> None:
        if self.epochs is None:
            check_integer("steps", self.steps, 1)
        elif check_integer("epochs", self.epochs, 1) and self.steps:
            raise invalid("steps", "must be left out where epochs are given", self.steps, "give one of both")
        check_choice("decay", self.decay, get_args(Decay))
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size, 1, remedy="use None for full-batch gradient descent")
        for name in ("learning_rate", "weight_decay", "truncation"):
            table = self._table(name)
            # A negative learning rate is pareto Theorem 21's own choice; only decay and truncation have a sign.
            if name != "learning_rate" and table.min() < 0:
                raise invalid(name, "must not be negative", float(table.min()))

    def of_rows(self, rows: int) -> Phase:
        """The phase with its epochs as steps over a training set of so many rows."""
        if self.epochs is None:
            return self
        size = min(rows, self.batch_size or rows)
        batch = None if self.batch_size is None else size
        return replace(self, steps=-(-self.epochs * rows // size), epochs=None, batch_size=batch)

    def tables(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Learning rates, factors 1 − decay and truncation levels, read-only; columns hidden, bias, output, offset.

        All have the shape (1, 4) when none of them changes, else (steps, 4).
        """
        return self._tables

    @cached_property
    def _tables(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        # The runs of a sweep share their phases: computed once.
        rates, decay, truncations = map(self._table, ("learning_rate", "weight_decay", "truncation"))
        shared = np.broadcast_arrays(rates, 1.0 - (decay * rates if self.decay == "coupled" else decay), truncations)
        rates, keeps, truncations = (np.ascontiguousarray(table) for table in shared)
        for table in (rates, keeps, truncations):
            table.flags.writeable = False
        return rates, keeps, truncations

    def _table(self, name: str) -> Float64Array:
        value = getattr(self, name)
        layers = value if isinstance(value, PerLayer) else PerLayer(value, value, value, value)
        columns = [self._column(f"{name}.{layer}", getattr(layers, layer)) for layer in LAYERS]
        return np.stack(np.broadcast_arrays(*columns), axis=1)

    def _column(self, name: str, value: Value) -> Float64Array:
        if not isinstance(value, Sequence | np.ndarray):
            return np.array([check_number(name, value)])
        if len(value) != self.steps:
            raise invalid(name, f"must hold one number for each of the {self.steps} steps", f"a length of {len(value)}")
        return np.array([check_number(f"{name}[{i}]", number) for i, number in enumerate(value)])


@dataclass(frozen=True)
class Schedule:
    """How a run is trained.

    Parameters
    ----------
    phases : Phase, or several
        Carried out in order.
    loss : "hinge", "logistic", "square", "absolute" or, for one output per class, "cross_entropy"
    sampling : "replacement" or "epochs"
        Minibatches of independent draws, or of consecutive pieces of a fresh permutation each epoch.
    evaluate : int or "log"
        When history is recorded and the early stop is checked: every so many steps, or on a grid of
        about 8 points per decade. Step 0 and the last step are always recorded.
    stop_error : float or None
        Stop at the first recorded step whose held-out error is at most this.
    optimiser : "sgd", "sign_sgd", "adamw", or "optax." and the name of a transformation
        What makes a direction of gradients: themselves, their signs, Adam's means (β 0.9 and 0.999), or such as
        "optax.scale_by_lion" with its default settings. All but plain "sgd" need an engine that is `general`.
    momentum : float
        Share of the direction before that "sgd" adds to the gradient.

    Examples
    --------
    >>> from fewfire.engines import Phase, Schedule
    >>> schedule = Schedule([Phase(1, learning_rate=1.0, batch_size=None), Phase(1000)], loss="logistic", evaluate=500)
    >>> schedule.steps, schedule.checkpoints()
    (1001, [0, 500, 1000, 1001])
    """

    phases: tuple[Phase, ...] | Any
    loss: LossName = "hinge"
    sampling: Sampling = "replacement"
    evaluate: int | Literal["log"] = "log"
    stop_error: float | None = None
    optimiser: str = "sgd"
    momentum: float = 0.0

    def __post_init__(self) -> None:
        several = (self.phases,) if isinstance(self.phases, Phase) else tuple(self.phases)
        if not several or not all(isinstance(phase, Phase) for phase in several):
            raise invalid("phases", "must be one or more Phase objects", self.phases, "pass Phase(steps=1000)")
        check_choice("loss", self.loss, get_args(LossName))
        check_choice("sampling", self.sampling, get_args(Sampling))
        if self.evaluate != "log":
            check_integer("evaluate", self.evaluate, 1, remedy='give a number of steps or "log"')
        if self.stop_error is not None:
            check_number("stop_error", self.stop_error, 0.0)
        if not (isinstance(self.optimiser, str) and self.optimiser.startswith(OPTAX)):
            check_choice("optimiser", self.optimiser, OPTIMISERS)
        momentum = check_number("momentum", self.momentum, 0.0, 1.0, open_high=True)
        if momentum and self.optimiser != "sgd":
            raise invalid("momentum", f"must be 0 for the optimiser {self.optimiser}", momentum, "leave it out")
        vars(self).update(phases=several, momentum=momentum)

    @property
    def steps(self) -> int:
        """The number of steps of all phases together, those of epochs apart."""
        return sum(phase.steps for phase in self.phases)

    def of_rows(self, rows: int | None) -> Schedule:
        """The schedule with epochs as steps over a training set of so many rows; None where examples are fresh."""
        if all(phase.epochs is None for phase in self.phases):
            return self
        if rows is None:
            raise invalid("epochs", "must be left out where examples are fresh", "a source", "give steps")
        return _with_steps(self, rows)

    @property
    def plain(self) -> bool:
        """Whether the optimiser is SGD without momentum, which every engine has."""
        return self.optimiser == "sgd" and not self.momentum

    def checkpoints(self) -> list[int]:
        """The steps after which the run is evaluated, ascending, from 0 to `steps`."""
        if self.evaluate == "log":
            grid = np.unique(np.round(10.0 ** np.arange(0, np.log10(self.steps) + 1e-9, 1 / 8)).astype(int))
        else:
            grid = np.arange(0, self.steps, int(self.evaluate))
        return sorted({0, self.steps, *grid.tolist()})


@lru_cache(maxsize=4096)
def _with_steps(schedule: Schedule, rows: int) -> Schedule:
    # Runs share what is computed of their phases.
    return replace(schedule, phases=tuple(phase.of_rows(rows) for phase in schedule.phases))


class Source(Protocol):
    """Where examples come from, such as a problem: row i of a stream is the same however it is drawn.

    A source may also have `describe()`, plain data that a device can draw from: a name and the values that go with it.
    """

    @property
    def inputs(self) -> int:
        """The number of columns of X."""
        ...

    def sample(self, m: int, seed: int | Stream, start: int = 0) -> tuple[AnyArray, AnyArray]:
        """Rows start … start + m − 1."""
        ...


Widths: TypeAlias = int | tuple[int, ...]
"""Neurons of the only hidden layer, or of each of several."""


def check_widths(name: str, value: object) -> Widths:
    """One width, or one per hidden layer; a single one is no tuple."""
    if not isinstance(value, tuple | list):
        return check_integer(name, value, 1)
    widths = tuple(check_integer(f"{name}[{i}]", one, 1) for i, one in enumerate(value))
    if not widths:
        raise invalid(name, "must not be empty", value, "give one width per hidden layer")
    return widths if len(widths) > 1 else widths[0]


@dataclass(frozen=True)
class Start:
    """Initial weights that are described, not drawn.

    Parameters
    ----------
    init : Initialiser
        Draws the first hidden layer. Those after it and the outputs of an `Mlp` are dense: weights and biases uniform
        within one over the square root of the inputs of their layer (pareto, C.1 and C.3).
    inputs : int
    width : int or tuple of int
        Neurons of the hidden layer, or of each of several.
    seed : int or Stream
        Stream "init" of the run with this number, or the stream itself.
    outputs : int
        More than 1 for the loss "cross_entropy", one per class.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.engines.Start(ff.networks.init.sparse(2), inputs=10, width=50, seed=0).width
    50
    """

    init: Initialiser
    inputs: int
    width: Widths
    seed: int | Stream = 0
    outputs: int = 1

    def __post_init__(self) -> None:
        if not callable(self.init):
            raise invalid("init", "must be an initialiser", self.init, "write init.sparse(2), for example")
        check_integer("inputs", self.inputs, 1)
        check_integer("outputs", self.outputs, 1)
        object.__setattr__(self, "width", check_widths("width", self.width))
        as_stream(self.seed, "init")

    @property
    def widths(self) -> tuple[int, ...]:
        """Neurons of each hidden layer."""
        return (self.width,) if isinstance(self.width, int) else self.width

    @property
    def stream(self) -> Stream:
        """The stream that the weights are drawn from."""
        return as_stream(self.seed, "init")

    def draw(self) -> TwoLayer | Mlp:
        """The network: a `TwoLayer` where one hidden layer and one output will do."""
        first, *deeper = self.widths
        drawn = self.init(self.inputs, first, self.stream)
        if self.outputs == 1 and not deeper:
            return drawn
        weights, biases, dense = [drawn.hidden], [drawn.bias], init.dense()
        for layer, width in enumerate([*deeper, self.outputs], start=2):
            above = dense(len(weights[-1]), width, self.stream.child(f"layer{layer}"))
            weights.append(above.hidden)
            biases.append(above.bias)
        return Mlp(weights, biases, drawn.activation)


@dataclass(frozen=True)
class Sample:
    """Examples that are described, not drawn: the first rows of a problem's sequence under a stream.

    Parameters
    ----------
    problem : Source
    rows : int
    seed : int or Stream
        Stream "data" of the run with this number ("test" for held-out examples), or the stream itself.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.engines.Sample(ff.problems.Parity(10, 2), rows=300, seed=0).rows
    300
    """

    problem: Source
    rows: int
    seed: int | Stream = 0

    def __post_init__(self) -> None:
        check_integer("rows", self.rows, 1)
        as_stream(self.seed, "data")

    @property
    def stream(self) -> Stream:
        """The stream that the rows are drawn from."""
        return as_stream(self.seed, "data")

    @property
    def array_bytes(self) -> int:
        """What X takes once drawn: a byte per input, or the `input_bytes` of the problem."""
        return self.rows * self.problem.inputs * int(getattr(self.problem, "input_bytes", 1))

    def draw(self) -> tuple[AnyArray, AnyArray]:
        """X of shape (rows, inputs) and y of shape (rows,)."""
        return self.problem.sample(self.rows, self.stream)


def describe(source: Source | None) -> dict[str, Any] | None:
    """The plain data of a source, or None where it has none."""
    method = getattr(source, "describe", None)
    return None if method is None else method()


@dataclass(frozen=True, eq=False)
class Run:
    """One training run.

    Parameters
    ----------
    network : TwoLayer, Mlp or Start
        Initial weights; not changed.
    schedule : Schedule
    X, y : arrays of shape (examples, inputs) and (examples,), optional
        The training set.
    X_test, y_test : arrays, optional
        Held-out examples.
    sample, test : Sample, optional
        The same, described: instead of X and y, and of X_test and y_test.
    source : Source, optional
        Fresh examples every step instead of a training set.
    seed : int or Stream
        Picks the minibatches (stream "batches"; fresh examples come from its child "online").
    support : sequence of int, optional
        The inputs the target depends on, where known: the history then records how much weight lies on them.

    Examples
    --------
    >>> import fewfire as ff
    >>> from fewfire.engines import Phase, Run, Sample, Schedule, Start
    >>> problem = ff.problems.Parity(10, 2)
    >>> schedule = Schedule(Phase(200, learning_rate=0.1))
    >>> X, y = problem.sample(300, seed=0)
    >>> drawn = Run(ff.networks.init.sparse(2)(10, width=50, seed=0), schedule, X, y)
    >>> described = Run(Start(ff.networks.init.sparse(2), 10, 50), schedule, sample=Sample(problem, 300))
    >>> drawn.inputs, described.width
    (10, 50)
    """

    network: TwoLayer | Mlp | Start
    schedule: Schedule
    X: AnyArray | None = None
    y: AnyArray | None = None
    X_test: AnyArray | None = None
    y_test: AnyArray | None = None
    sample: Sample | None = None
    test: Sample | None = None
    source: Source | None = None
    seed: int | Stream = 0
    support: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.network, TwoLayer):
            check_single_output(self.network, "training")
        elif not isinstance(self.network, Mlp | Start):
            raise invalid("network", "must be a TwoLayer, an Mlp or a Start", self.network)
        if (self.schedule.loss == "cross_entropy") != (self.outputs > 1):
            rule = "must be 'cross_entropy' for a network of several outputs, and for no other"
            raise invalid("loss", rule, f"{self.schedule.loss} and {self.outputs} outputs", "give one output per class")
        if self.support is not None:
            object.__setattr__(self, "support", check_support("support", self.support, self.inputs))
        as_stream(self.seed, "batches")
        self._check_sources()
        if self.test is not None and not isinstance(self.test.seed, Stream):
            # The same number for training and held-out examples must not give the same rows.
            held_out = Sample(self.test.problem, self.test.rows, Stream(self.test.seed, "test"))
            object.__setattr__(self, "test", held_out)
        if self.X is not None or self.X_test is not None:
            self._check_arrays()
        object.__setattr__(self, "schedule", self.schedule.of_rows(self.rows or None))
        if self.source is not None and any(phase.batch_size is None for phase in self.schedule.phases):
            rule = "must be a number when examples come from a source"
            raise invalid("batch_size", rule, None, "choose one, e.g. 32")
        limit = self.schedule.stop_error
        if limit is not None and self.X_test is None and self.test is None:
            raise invalid("stop_error", "needs held-out data", limit, "pass X_test and y_test, or test=Sample(…)")

    @property
    def rows(self) -> int:
        """How many examples the training set has, 0 where they are fresh."""
        return self.sample.rows if self.sample is not None else 0 if self.X is None else len(self.X)

    @property
    def test_rows(self) -> int:
        """How many examples are held out."""
        return self.test.rows if self.test is not None else 0 if self.X_test is None else len(self.X_test)

    @property
    def inputs(self) -> int:
        """How many coordinates an example has."""
        return self.network.inputs

    @property
    def width(self) -> int:
        """How many hidden neurons there are."""
        return sum(self.widths)

    @property
    def widths(self) -> tuple[int, ...]:
        """How many neurons each hidden layer has."""
        return (self.network.width,) if isinstance(self.network, TwoLayer) else self.network.widths

    @property
    def outputs(self) -> int:
        """How many outputs the network has."""
        return self.network.outputs

    @property
    def products(self) -> int:
        """Multiply-adds of a forward pass over one example."""
        return products(self.inputs, self.widths, self.outputs)

    @cached_property
    def stream(self) -> Stream:
        """The stream that picks the minibatches."""
        return as_stream(self.seed, "batches")

    @property
    def array_bytes(self) -> int:
        """What it takes once drawn: weights in float32 and rows as given, or as their problem draws them."""
        arrays = (self.X, self.X_test)
        given = sum(array.nbytes for array in arrays if array is not None)
        described = sum(sample.array_bytes for sample in (self.sample, self.test) if sample is not None)
        return given + described + 4 * (self.products + self.width)

    def drawn(self, engine: Engine | None = None) -> Run:
        """The same run with arrays instead of descriptions, but for what an engine draws itself."""
        problems, starts = (engine.draws_problems, engine.draws_starts) if engine is not None else ((), ())
        changes: dict[str, Any] = {}
        if isinstance(self.network, Start) and self.network.init.name not in starts:
            changes["network"] = self.network.draw()
        for name, table, labels in (("sample", "X", "y"), ("test", "X_test", "y_test")):
            described: Sample | None = getattr(self, name)
            if described is not None and (describe(described.problem) or {}).get("name") not in problems:
                changes[table], changes[labels] = described.draw()
                changes[name] = None
        return replace(self, **changes) if changes else self

    def batch(self, size: int | None, position: int) -> tuple[AnyArray, AnyArray]:
        """X and y of one step of a drawn run: `size` examples, None for all, after the `position` drawn before.

        The row of the training set, or of the source, is the same on every engine.
        """
        if self.source is not None:
            assert size is not None  # refused by the constructor
            X, y = self.source.sample(size, self.stream.child("online"), start=position)
            return X, np.asarray(y)
        assert self.X is not None and self.y is not None, "drawn() comes first"
        if size is None:
            return self.X, self.y
        chosen = draw_batch(self.schedule.sampling, self.stream, len(self.X), size, position)
        return self.X[chosen], self.y[chosen]

    def _check_sources(self) -> None:
        """One training set or source, at most one test set, labels with every table."""
        if (self.X is not None) + (self.sample is not None) + (self.source is not None) != 1:
            given = [name for name in ("X", "sample", "source") if getattr(self, name) is not None]
            rule, remedy = "sample or source must be given, exactly one of them", "leave out all but one"
            raise invalid("X,", rule, f"a Run with {' and '.join(given) or 'none'}", remedy if given else "pass one")
        if (self.X is None) != (self.y is None) or (self.X_test is None) != (self.y_test is None):
            rule = "goes with X, and y_test with X_test"
            raise invalid("y", rule, "a Run with one of a pair", "pass both or neither")
        if self.X_test is not None and self.test is not None:
            raise invalid("test", "and X_test exclude each other", "a Run with both", "pass one of them")
        for name, described in (("sample", self.sample), ("test", self.test)):
            if described is not None and not isinstance(described, Sample):
                raise invalid(name, "must be a Sample", described, f"pass {name}=Sample(problem, rows, seed)")
            self._check_inputs_of(name, None if described is None else described.problem)
        self._check_inputs_of("source", self.source)

    def _check_inputs_of(self, name: str, problem: Source | None) -> None:
        if problem is not None and problem.inputs != self.inputs:
            rule = f"must have as many inputs as the network, {self.inputs}"
            raise invalid(name, rule, problem.inputs, "give the start as many inputs as the problem has")

    def _check_arrays(self) -> None:
        """Refuse tables and labels that do not fit, and keep labels in the network's precision."""
        dtype = np.dtype(np.float32) if isinstance(self.network, Start) else self.network.dtype
        for table, labels in (("X", "y"), ("X_test", "y_test")):
            if getattr(self, table) is not None:
                X = check_inputs(table, getattr(self, table), self.inputs, dtype)
                object.__setattr__(self, table, X)
                object.__setattr__(self, labels, self._labels(labels, len(X)).astype(dtype))

    def _labels(self, name: str, rows: int) -> FloatArray:
        labels = check_labels(name, getattr(self, name), rows)
        if self.outputs > 1:
            known = np.isin(labels, np.arange(self.outputs))
            if not known.all():
                rule, wrong = f"must be a class, 0 to {self.outputs - 1}", float(labels[~known][0])
                raise invalid(name, rule, wrong, "number the classes from 0")
        elif LOSSES[self.schedule.loss].signs and np.any(np.abs(labels) != 1):
            wrong = float(labels[np.abs(labels) != 1][0])
            raise invalid(name, f"must be ±1 for the {self.schedule.loss} loss", wrong, "recode the two classes")
        return labels


def products(inputs: int, widths: Sequence[int], outputs: int = 1) -> int:
    """Multiply-adds of a forward pass over one example: the weights of a network, its biases apart."""
    sizes = [inputs, *widths, outputs]
    return sum(below * above for below, above in pairwise(sizes))


GENERAL = "use engine='jax' (pip install 'fewfire[jax]')"


def draw_batch(sampling: Sampling, stream: Stream, examples: int, batch_size: int, position: int) -> IdArray:
    """The examples of one step, of shape (batch_size,); `position` counts those drawn before."""
    if sampling == "replacement":
        return stream.integers(examples, batch_size, start=position)
    first, last = position // examples, (position + batch_size - 1) // examples
    epochs = stream.child("epochs")
    order = np.concatenate([epochs.permutation(examples, start=e * examples) for e in range(first, last + 1)])
    return order[position - first * examples :][:batch_size]
