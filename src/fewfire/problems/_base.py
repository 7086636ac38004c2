"""What every problem offers, and the sampling that the ±1 problems share.

A sample is a window of an endless sequence: row i depends on the seed and on i alone, so a later
batch, or one row of it, is drawn without what comes before. Inputs come from the "data" stream of
the seed; label noise and everything else from its children, so the noise level never changes X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._registry import Registry
from fewfire._types import AnyArray, Float64Array, SignArray
from fewfire._validate import check_finite, check_integer, check_number, check_signs

MAX_START = 2**40
"""Rows are numbered up to here, which keeps every word number of a stream inside 64 bits."""

Given: TypeAlias = tuple[int, ...] | Any
"""A field that is a tuple once the problem exists; None or any sequence may be passed for it."""


@runtime_checkable
class Problem(Protocol):
    """A target function and a distribution of inputs."""

    @property
    def inputs(self) -> int:
        """The number of columns of X."""

    @property
    def bayes_error(self) -> float:
        """The error no predictor can beat: probability of a wrong label, or mean squared error for real labels."""

    def sample(self, m: int, seed: int | Stream = 0, start: int = 0) -> tuple[AnyArray, AnyArray]:
        """Rows start … start + m − 1: X of shape (m, inputs) and labels y of shape (m,)."""

    def target(self, X: ArrayLike) -> AnyArray:
        """The noiseless label of each row of X, of shape (rows,)."""


PROBLEMS: Registry[type[Any]] = Registry()
"""The problems that specs can name, by `name`."""

Kind = TypeVar("Kind", bound=type)


def register_problem(kind: Kind) -> Kind:
    """Make a problem known to specs under its class attribute `name`; a decorator of its frozen dataclass.

    Its fields must be plain values (numbers, texts, tuples of these), since they are written into specs and hashed. A
    sweep that runs in processes or on a cluster finds it there by its module, which has to be one that can be imported.
    """
    if not is_dataclass(kind) or not isinstance(getattr(kind, "name", None), str):
        raise invalid("kind", "must be a dataclass with a class attribute name", kind, 'write name: ClassVar = "…"')
    _check_problem(kind)
    if not hasattr(kind, "describe"):
        kind.describe = DescribedProblem.describe  # type: ignore[attr-defined]
    PROBLEMS.add(kind.name, kind, own=kind.__module__.startswith("fewfire."))  # type: ignore[attr-defined]
    return kind


def _check_problem(kind: type) -> None:
    """Refuse a class whose objects are no `Problem`, before a sweep meets what is missing."""
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise invalid("kind", "must be frozen, so that a run stays what it is", kind, "write @dataclass(frozen=True)")
    own = {field.name for field in fields(kind)}
    lacks = [name for name in ("inputs", "bayes_error") if name not in own and not hasattr(kind, name)]
    if getattr(kind, "inputs", None) is CubeProblem.inputs and "n" not in own and not hasattr(kind, "n"):
        lacks.insert(0, "inputs")
    lacks += [f"{name}()" for name in ("sample", "target") if not callable(getattr(kind, name, None))]
    lacks += [f"{name}()" for name in sorted(getattr(kind, "__abstractmethods__", ()))]
    if lacks:
        raise invalid("kind", "must have inputs, bayes_error, sample() and target()", kind, f"add {', '.join(lacks)}")
    for name in ("inputs", "bayes_error"):
        if callable(getattr(kind, name, None)):
            raise invalid("kind", f"must have {name} as a property, not a method", kind, "write @property above it")


def unregister_problem(kind: type) -> None:
    """Forget a problem that was registered from outside.

    Examples
    --------
    >>> from fewfire.problems import Parity, unregister_problem
    >>> unregister_problem(Parity)  # what comes with fewfire stays
    Traceback (most recent call last):
    ...
    fewfire._errors.InvalidArgument: name must be that of something registered from outside; got 'parity'.
    """
    PROBLEMS.remove(kind.name)  # type: ignore[attr-defined]


class DescribedProblem:
    """A problem that describes itself in plain data: its `name` and the values of its fields."""

    name: ClassVar[str]

    def describe(self) -> dict[str, Any]:
        """Name and fields as a spec holds them, and as a device can draw from; tuples are lists."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"name": self.name, **{key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}}


class CubeProblem(ABC):
    """A function of ±1 inputs whose labels have Gaussian noise of standard deviation `noise`.

    A subclass gives `_values`, `inputs` unless it has a field n, and `_draw` when its inputs are not uniform.
    """

    n: int
    noise: float

    @property
    def inputs(self) -> int:
        """The number of columns of X: n."""
        return self.n

    @abstractmethod
    def _values(self, X: SignArray) -> AnyArray:
        """The target on rows that are known to be ±1."""

    @property
    def bayes_error(self) -> float:
        """The mean squared error of the best predictor, which is the target: noise²."""
        return float(getattr(self, "noise", 0.0)) ** 2

    def target(self, X: ArrayLike) -> AnyArray:
        """The noiseless label of each row of X, ±1 of shape (rows, inputs): shape (rows,), int8 where it is ±1."""
        return self._values(check_signs("X", X, self.inputs))

    def sample(self, m: int, seed: int | Stream = 0, start: int = 0) -> tuple[SignArray, AnyArray]:
        """Rows start … start + m − 1 of the endless sequence of examples of a seed: X int8 (m, inputs), y (m,)."""
        m, start = check_window(m, start)
        stream = as_stream(seed, "data")
        X = self._draw(stream, m, start)
        return X, self._noisy(self._values(X), stream, start)

    def _draw(self, stream: Stream, m: int, start: int) -> SignArray:
        return stream.sign_rows(m, self.inputs, start)

    def _noisy(self, labels: AnyArray, stream: Stream, start: int) -> AnyArray:
        return labels + getattr(self, "noise", 0.0) * stream.child("noise").normal(len(labels), start)


class SignProblem(DescribedProblem, CubeProblem):
    """A ±1 function of ±1 inputs whose labels are flipped with probability `noise`, 0 without that field."""

    @property
    def bayes_error(self) -> float:
        """The share of wrong labels of the best predictor, which is the target: `noise`."""
        return float(getattr(self, "noise", 0.0))

    def _noisy(self, labels: AnyArray, stream: Stream, start: int) -> AnyArray:
        return flip(labels, getattr(self, "noise", 0.0), stream, start)


@dataclass(frozen=True)
class CleanLabels:
    """A problem's inputs with the labels of its target: what a predictor is tested on where labels are noisy."""

    problem: Problem

    @property
    def inputs(self) -> int:
        """The number of columns of X."""
        return self.problem.inputs

    @property
    def input_bytes(self) -> int:
        """What a number of X takes."""
        return int(getattr(self.problem, "input_bytes", 1))

    def sample(self, m: int, seed: int | Stream = 0, start: int = 0) -> tuple[AnyArray, AnyArray]:
        """Rows start … start + m − 1 of the problem's sequence, with the target's labels."""
        X, _ = self.problem.sample(m, seed, start)
        return X, self.problem.target(X)

    def describe(self) -> dict[str, Any] | None:
        """What a device can draw from: the problem without noise; None where noise is no field of it."""
        described: dict[str, Any] = getattr(self.problem, "describe", dict)()
        return {**described, "noise": 0.0} if "noise" in described else None


def assign(problem: object, **fields: object) -> None:
    """Store validated fields in a frozen dataclass; only for `__post_init__`."""
    for name, value in fields.items():
        object.__setattr__(problem, name, value)


def check_window(m: object, start: object) -> tuple[int, int]:
    """A number of rows and the number of the first one."""
    return check_integer("m", m, 1), check_integer("start", start, 0, MAX_START)


def check_members(name: str, values: Any) -> tuple[Any, ...]:
    """Anything iterable, as a tuple."""
    try:
        return tuple(values)
    except TypeError:
        raise invalid(name, "must be a sequence of integers", values, "pass a list or a tuple") from None


def check_outputs(name: str, values: ArrayLike, rows: int) -> Float64Array:
    """What a caller's function gave for `rows` rows: that many finite numbers, as float64."""
    array = np.asarray(values)
    if array.shape != (rows,) or array.dtype.kind not in "biuf":
        rule, got = f"must give {rows} numbers for {rows} rows", f"shape {array.shape}, dtype {array.dtype}"
        raise invalid(name, rule, got, "return one number per row")
    return np.asarray(check_finite(f"{name}(X)", array.astype(np.float64)), dtype=np.float64)


def check_flip_probability(noise: object) -> float:
    """A label-flip probability."""
    return check_number("noise", noise, 0.0, 0.5, remedy="it is a flip probability; above 1/2 negate the target")


def happens(stream: Stream, probability: float, rows: int, start: int) -> NDArray[np.bool_]:
    """For each row, whether an event of this probability (to 2⁻³²) happens; one word per row."""
    return np.asarray(stream.words(rows, start) < probability * 2.0**32)


def flip(labels: SignArray, noise: float, stream: Stream, start: int) -> SignArray:
    """Labels of rows start …, each negated with probability `noise`."""
    if noise == 0.0:
        return labels
    return np.where(happens(stream.child("noise"), noise, len(labels), start), -labels, labels)


def parity(X: SignArray, support: tuple[int, ...]) -> SignArray:
    """χ_S: the product of the columns in `support`, int8 of shape (rows,)."""
    return np.asarray(np.multiply.reduce(X[:, support], axis=1, dtype=np.int8))
