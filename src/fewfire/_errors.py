"""The exception tree, and the one way an error about an argument is worded.

Every message names the argument, the rule it breaks, the value that came, and what to do instead.
"""

from __future__ import annotations


class FewfireError(Exception):
    """Base of every error fewfire raises on purpose."""


class InvalidArgument(FewfireError, ValueError):
    """An argument breaks a stated rule; nothing was changed."""


class FileFormatError(FewfireError, ValueError):
    """A file is not one fewfire wrote, is damaged, or was written by a newer version."""


class StoreError(FewfireError, RuntimeError):
    """A store of results cannot be opened or written; what it holds already is kept."""


class DataUnavailable(FewfireError, RuntimeError):
    """A data set is neither in a local file nor could it be fetched; the message says where to put it."""


class ExecutorError(FewfireError, RuntimeError):
    """A sweep cannot go on: a run failed and that was to stop it, or the workers are not usable."""


class DivergenceError(FewfireError, ArithmeticError):
    """Training left the finite numbers; `step` and `learning_rate` say where."""

    def __init__(self, message: str, *, step: int, learning_rate: float) -> None:
        super().__init__(message)
        self.step = step
        self.learning_rate = learning_rate

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword arguments are lost by the default pickling of exceptions; runs cross process borders.
        return _rebuild_divergence, (str(self), self.step, self.learning_rate)


class DeviceMemoryError(FewfireError, MemoryError):
    """A device has too little memory for what was asked of it."""


class EngineUnavailable(FewfireError, RuntimeError):
    """A named engine cannot run here; the message says what to install."""


class MissingDependency(FewfireError, ImportError):
    """An optional package is needed; the message gives the install command."""


class FewfireWarning(UserWarning):
    """Base of every warning fewfire issues."""


class ConvergenceWarning(FewfireWarning):
    """An iteration stopped before it reached its tolerance; the message says how far it came and what helps."""


class MissingExtensionWarning(FewfireWarning):
    """The C++ part is not installed; the slower reference code serves."""


def _rebuild_divergence(message: str, step: int, learning_rate: float) -> DivergenceError:
    return DivergenceError(message, step=step, learning_rate=learning_rate)


def invalid(argument: str, rule: str, got: object, remedy: str = "") -> InvalidArgument:
    """Word an error about one argument; raise what it returns.

    >>> raise invalid("k", "must be at most n = 3", 5, "choose k between 1 and 3")
    Traceback (most recent call last):
    ...
    fewfire._errors.InvalidArgument: k must be at most n = 3; got 5. Remedy: choose k between 1 and 3.
    """
    shown = got if isinstance(got, str) and got.startswith(("shape", "dtype", "a ", "an ", "NaN")) else _shown(got)
    message = f"{argument} {rule}; got {shown}."
    return InvalidArgument(f"{message} Remedy: {remedy}." if remedy else message)


def _shown(value: object, most: int = 500) -> str:
    """A value as Python writes it, cut where it would fill the screen."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of more than 4300 digits
        return "an integer of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
