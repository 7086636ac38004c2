"""What an engine takes: independent runs, each a pure function of its fields.

A run is *described*: its start is an initialiser, a width and a stream, its examples are a problem, a number of rows
and a stream. A description weighs a few hundred bytes and is drawn when its turn comes, by the engine itself where it
can (on its device), else by `Run.drawn`. Arrays are the other way to describe a run: a `TwoLayer`, X and y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_inputs, check_integer, check_labels, check_support
from fewfire.engines._losses import get_loss
from fewfire.networks import TwoLayer, check_single_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import AnyArray, FloatArray
    from fewfire.engines._protocol import Engine
    from fewfire.engines._schedule import Schedule
    from fewfire.networks.init import Initialiser


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


@dataclass(frozen=True)
class Start:
    """Initial weights that are described, not drawn.

    Parameters
    ----------
    init : Initialiser
    inputs, width : int
    seed : int or Stream
        Stream "init" of the run with this number, or the stream itself.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.engines.Start(ff.networks.init.sparse(2), inputs=10, width=50, seed=0).width
    50
    """

    init: Initialiser
    inputs: int
    width: int
    seed: int | Stream = 0

    def __post_init__(self) -> None:
        if not callable(self.init):
            raise invalid("init", "must be an initialiser", self.init, "write init.sparse(2), for example")
        if type(self.inputs) is not int or type(self.width) is not int or min(self.inputs, self.width) < 1:
            check_integer("inputs", self.inputs, 1)
            check_integer("width", self.width, 1)
        _check_seed(self.seed)

    @property
    def stream(self) -> Stream:
        """The stream that the weights are drawn from."""
        return as_stream(self.seed, "init")

    def draw(self) -> TwoLayer:
        """The network."""
        return self.init(self.inputs, self.width, self.stream)


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
        if type(self.rows) is not int or self.rows < 1:
            check_integer("rows", self.rows, 1)
        _check_seed(self.seed)

    @property
    def stream(self) -> Stream:
        """The stream that the rows are drawn from."""
        return as_stream(self.seed, "data")

    @property
    def array_bytes(self) -> int:
        """What X takes once drawn: a byte per input, or as many as the problem says by `input_bytes`."""
        return self.rows * self.problem.inputs * int(getattr(self.problem, "input_bytes", 1))

    def draw(self) -> tuple[AnyArray, AnyArray]:
        """X of shape (rows, inputs) and y of shape (rows,)."""
        return self.problem.sample(self.rows, self.stream)


def _check_seed(seed: object) -> None:
    if type(seed) is not int or not 0 <= seed < 2**64:
        as_stream(seed, "")  # type: ignore[arg-type]  # takes a Stream or another integer, refuses the rest


def describe(source: Source | None) -> dict[str, Any] | None:
    """The plain data of a source, or None where it has none."""
    told = getattr(source, "describe", None)
    return None if told is None else told()


@dataclass(frozen=True, eq=False)
class Run:
    """One training run.

    Parameters
    ----------
    network : TwoLayer or Start
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

    network: TwoLayer | Start
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
        elif not isinstance(self.network, Start):
            raise invalid("network", "must be a TwoLayer or a Start", self.network)
        if self.support is not None:
            object.__setattr__(self, "support", check_support("support", self.support, self.inputs))
        _check_seed(self.seed)
        self._check_sources()
        if self.test is not None and not isinstance(self.test.seed, Stream):
            # The same number for training and held-out examples must not give the same rows.
            held_out = Sample(self.test.problem, self.test.rows, Stream(self.test.seed, "test"))
            object.__setattr__(self, "test", held_out)
        if self.X is not None or self.X_test is not None:
            self._check_arrays()
        if self.source is not None and any(phase.batch_size is None for phase in self.schedule.phases):
            raise invalid(
                "batch_size", "must be a number when examples come from a source", None, "choose one, e.g. 32"
            )
        if self.schedule.stop_error is not None and self.X_test is None and self.test is None:
            raise invalid(
                "stop_error",
                "needs held-out data",
                self.schedule.stop_error,
                "pass X_test and y_test, or test=Sample(…)",
            )

    @property
    def inputs(self) -> int:
        """How many coordinates an example has."""
        return self.network.inputs

    @property
    def width(self) -> int:
        """How many hidden neurons there are."""
        return self.network.width

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
        return given + described + 4 * self.width * (self.inputs + 2)

    @property
    def is_drawn(self) -> bool:
        """Whether nothing is left to draw but fresh examples."""
        return isinstance(self.network, TwoLayer) and self.sample is None and self.test is None

    def drawn(self) -> Run:
        """The same run with arrays in place of descriptions; itself when it has none."""
        return self._drawn(frozenset(), frozenset())

    def drawn_for(self, engine: Engine) -> Run:
        """The same run with arrays in place of what the engine does not draw itself."""
        return self._drawn(engine.draws_problems, engine.draws_starts)

    def _drawn(self, problems: frozenset[str], starts: frozenset[str]) -> Run:
        """With arrays but for these problems and starts, which stay described."""
        changes: dict[str, Any] = {}
        if isinstance(self.network, Start) and self.network.init.name not in starts:
            changes["network"] = self.network.draw()
        for name, table, labels in (("sample", "X", "y"), ("test", "X_test", "y_test")):
            described: Sample | None = getattr(self, name)
            if described is not None and (describe(described.problem) or {}).get("name") not in problems:
                changes[table], changes[labels] = described.draw()
                changes[name] = None
        return replace(self, **changes) if changes else self

    def arrays(self) -> tuple[TwoLayer, AnyArray | None, AnyArray | None, AnyArray | None, AnyArray | None]:
        """Network, X, y, X_test, y_test of a run that is drawn."""
        assert isinstance(self.network, TwoLayer), "drawn() comes first"
        return self.network, self.X, self.y, self.X_test, self.y_test

    def _check_sources(self) -> None:
        """One training set or source, at most one test set, labels with every table."""
        if (self.X is not None) + (self.sample is not None) + (self.source is not None) != 1:
            given = [name for name in ("X", "sample", "source") if getattr(self, name) is not None]
            rule, remedy = "sample or source must be given, exactly one of them", "leave out all but one"
            raise invalid("X,", rule, f"a Run with {' and '.join(given) or 'none'}", remedy if given else "pass one")
        if (self.X is None) != (self.y is None) or (self.X_test is None) != (self.y_test is None):
            raise invalid(
                "y", "goes with X, and y_test with X_test", "a Run with one of a pair", "pass both or neither"
            )
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
        dtype = self.network.dtype if isinstance(self.network, TwoLayer) else np.dtype(np.float32)
        for table, labels in (("X", "y"), ("X_test", "y_test")):
            if getattr(self, table) is not None:
                X = check_inputs(table, getattr(self, table), self.inputs, dtype)
                object.__setattr__(self, table, X)
                object.__setattr__(self, labels, self._labels(labels, len(X)).astype(dtype))

    def _labels(self, name: str, rows: int) -> FloatArray:
        labels = check_labels(name, getattr(self, name), rows)
        if get_loss(self.schedule.loss).signs and np.any(np.abs(labels) != 1):
            wrong = float(labels[np.abs(labels) != 1][0])
            raise invalid(name, f"must be ±1 for the {self.schedule.loss} loss", wrong, "recode the two classes")
        return labels
