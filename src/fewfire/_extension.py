"""Access to the C++ part, `fewfire._core`, which may be missing.

Code that has a fast twin asks `core()` and falls back to its NumPy twin on None. The first such fallback in a process
warns, once. `without_extension()` is the one switch that hides the C++ part from all of them.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from fewfire._errors import MissingExtensionWarning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_REMEDY = "Remedy: install a C++20 compiler (Debian: apt install g++) and reinstall fewfire."
MISSING = f"fewfire's C++ part is not installed. {_REMEDY}"
"""Why something that has no twin cannot run."""

MESSAGE = (
    "fewfire's C++ part is not installed, so the NumPy reference code serves: results are the same, only slower. "
    f"{_REMEDY}"
)

_hidden = False


def load() -> ModuleType | None:
    """The extension module, or None when it is not installed; never warns."""
    if _hidden:
        return None
    try:
        from fewfire import _core
    except ImportError:
        return None
    return _core


def core() -> ModuleType | None:
    """The extension module, or None with one warning per process."""
    return None if _hidden else _loaded()


@cache
def _loaded() -> ModuleType | None:
    module = load()
    if module is None:
        warnings.warn(MESSAGE, MissingExtensionWarning, stacklevel=4)
    return module


@contextmanager
def without_extension() -> Iterator[None]:
    """Run as if the C++ part were not installed, with the warning already given: for tests, in all threads at once."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before
