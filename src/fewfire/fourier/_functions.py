"""Anything with values on the cube as one plain function: a callable, a network, or a problem.

Recognised by what they offer, not by class: a problem has `inputs` and `target(X)`, a network `inputs` and a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire._types import AnyArray, Float64Array, SignArray
from fewfire._validate import check_integer

Function: TypeAlias = Callable[[SignArray], Float64Array]
"""int8 points of shape (rows, n) to float64 values of shape (rows,)."""

_OFFER = "pass a callable on ±1 tables with n, 2ⁿ values, a network, or a problem"


def as_function(f: object, n: int | None) -> tuple[Function, int]:
    """The function behind `f`, with its values checked, and its number of inputs."""
    inputs = getattr(f, "inputs", None)
    target = getattr(f, "target", None)
    rule = target if inputs is not None and callable(target) else f
    if not callable(rule):
        raise invalid("f", "must be callable on ±1 tables", f"a {type(f).__name__}", _OFFER)
    if n is None and inputs is None:
        raise invalid("n", "must be given with a plain callable", n, "give the number of its inputs")
    if n is not None:
        n = check_integer("n", n, 1)
    if inputs is not None:
        known = check_integer("f.inputs", inputs, 1)
        if n is not None and n != known:
            raise invalid("n", f"must agree with f.inputs = {known}", n, "leave n out")
        n = known
    assert n is not None

    def evaluate(points: SignArray) -> Float64Array:
        values: AnyArray = np.asarray(rule(points))
        if values.shape != (len(points),):
            wanted = f"must give one value per row, shape ({len(points)},)"
            raise invalid("f", wanted, f"shape {values.shape}", "flatten its result")
        if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
            got = f"dtype {values.dtype}" if values.dtype.kind not in "biuf" else "NaN or infinity among its values"
            raise invalid("f", "must give finite real numbers", got, "check f on the points it fails on")
        return values.astype(np.float64, copy=False)

    return evaluate, n
