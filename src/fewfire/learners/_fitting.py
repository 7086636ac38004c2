"""What the `fit` of every learner keeps to: it succeeds, or it changes nothing; and labels of any size.

A fit that raises, be it for bad data, for want of memory or by Ctrl-C, leaves the estimator as it was: one that was
fitted before predicts as before, `n_features_in_` included, and one that was not is still unfitted.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from fewfire._errors import invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import Float64Array

Arguments = ParamSpec("Arguments")
Learner = TypeVar("Learner")
Result = TypeVar("Result")

LARGEST = 1e300
"""The magnitude of a number to learn, at most: what is predicted has to stay finite."""


def all_or_nothing(
    fit: Callable[Concatenate[Learner, Arguments], Result],
) -> Callable[Concatenate[Learner, Arguments], Result]:
    """A method that takes back what it has set on its object when it raises.

    >>> class Counter:
    ...     @all_or_nothing
    ...     def fit(self):
    ...         self.count_ = 1
    ...         raise ValueError
    >>> counter = Counter()
    >>> try:
    ...     counter.fit()
    ... except ValueError:
    ...     vars(counter)
    {}
    """

    @wraps(fit)
    def guarded(self: Learner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        state: dict[str, Any] = vars(self)
        before = dict(state)
        try:
            return fit(self, *arguments, **options)
        except BaseException:
            state.clear()
            state.update(before)
            raise

    return guarded


def label_unit(labels: Float64Array) -> float:
    """What to divide labels by so that their squares stay finite and above 0: a power of two, 1 for ordinary ones."""
    largest = float(np.abs(labels).max())
    if largest > LARGEST:
        raise invalid("y", f"must be at most {LARGEST:g} in magnitude", largest, "measure it in other units")
    ordinary = 1e-100 < largest < 1e100 or largest == 0.0
    return 1.0 if ordinary else float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1))
