"""What every initialiser is, the dense one, and all of them by name.

An initialiser is a frozen, hashable recipe, called as `initialiser(inputs, width, seed)`. Streams: the seed names
stream "init" of a run, whose children "hidden", "bias", "output" and "offset" give the numbers, so the same seed gives
the same network on every engine and machine.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._types import Float64Array, FloatArray
from fewfire._validate import check_choice, check_integer
from fewfire.networks._two_layer import TwoLayer

Parameter = int | float | str | bool | None
"""What a parameter of an initialiser may be, so that a spec can hold and hash it."""


@dataclass(frozen=True, repr=False)
class Initialiser(ABC):
    """A way to draw the initial weights of a `TwoLayer`; equal when name and parameters are."""

    name: ClassVar[str]

    def __call__(self, inputs: int, width: int, seed: int | Stream) -> TwoLayer:
        """Draw a network.

        Parameters
        ----------
        inputs, width : int
            How many coordinates an input has, and how many hidden neurons there are.
        seed : int or Stream
            A run's number, or its stream "init".
        """
        inputs, width = check_integer("inputs", inputs, 1), check_integer("width", width, 1)
        return self._draw(inputs, width, as_stream(seed, "init"))

    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name, as plain numbers and texts."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.parameters().items())})"

    @abstractmethod
    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        """The network, for arguments already checked."""


INITIALISERS: Final[dict[str, Callable[..., Initialiser]]] = {}
"""What makes initialisers, by name."""

Factory = TypeVar("Factory", bound="Callable[..., Initialiser]")


def named(factory: Factory) -> Factory:
    """Let `from_parameters` find a function by its name, which is that of the initialisers it makes."""
    INITIALISERS[factory.__name__] = factory
    return factory


def from_parameters(name: str, parameters: Mapping[str, Any] | None = None) -> Initialiser:
    """The initialiser of that name with these parameters, as a spec file holds them.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.networks.init.from_parameters("sparse", {"s": 2})
    sparse(s=2, value=1.0)
    """
    factory = INITIALISERS[check_choice("init", name, INITIALISERS)]
    given = dict(parameters or {})
    try:
        inspect.signature(factory).bind(**given)
    except TypeError as error:
        takes = ", ".join(inspect.signature(factory).parameters) or "no parameters"
        raise invalid(f"init {name!r}", f"takes {takes}", sorted(given), str(error)) from None
    return factory(**given)


def check_condition(strict: bool, holds: bool, argument: str, rule: str, got: object, statement: str) -> None:
    """Refuse what a paper's statement excludes, unless the user asked for it with strict=False."""
    if strict and not holds:
        raise invalid(argument, f"{rule} ({statement})", got, "change it, or pass strict=False to leave the theorem")


def half_of(width: int) -> int:
    """Half of an even width: the number of mirrored pairs."""
    if width % 2:
        raise invalid("width", "must be even, because neurons come in pairs", width, f"use {width + 1}")
    return width // 2


def mirrored(hidden: FloatArray, bias: Float64Array, output: Float64Array, activation: str) -> TwoLayer:
    """The float32 network of the given neurons and of their copies with opposite output: the zero function."""
    return TwoLayer(
        np.concatenate([hidden, hidden]).astype(np.float32, copy=False),
        np.concatenate([bias, bias]),
        np.concatenate([output, -output]),
        activation=activation,
    )


def with_dense_rest(hidden: FloatArray, stream: Stream) -> TwoLayer:
    """A network with the given first-layer weights; bias, output and offset as `dense` draws them."""
    width, inputs = hidden.shape
    inner, outer = 1 / math.sqrt(inputs), 1 / math.sqrt(width)
    return TwoLayer(
        hidden.astype(np.float32, copy=False),
        stream.child("bias").uniform(width, -inner, inner),
        stream.child("output").uniform(width, -outer, outer),
        float(stream.child("offset").uniform(1, -outer, outer)[0]),
    )


@dataclass(frozen=True, repr=False)
class _Dense(Initialiser):
    name = "dense"

    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        bound = 1 / math.sqrt(inputs)
        return with_dense_rest(stream.child("hidden").uniform((width, inputs), -bound, bound), stream)


@named
def dense() -> Initialiser:
    """Dense weights: hidden and bias U(±1/√inputs), output and offset U(±1/√width), ReLU (pareto, C.1).

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.networks.init.dense()(20, width=100, seed=0)
    TwoLayer(inputs=20, width=100, activation=relu, dtype=float32)
    """
    return _Dense()
