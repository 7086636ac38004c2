"""Access to the C++ part, `fewfire._core`, which may be missing.

Code with a C++ version calls `core()` and falls back to NumPy on None. The first such fallback in a process
warns, once. `without_extension()` is the one switch that hides the C++ part from all of them. The environment variable
FEWFIRE_ISA selects an instruction set by name; one that cannot be used is refused, not passed over.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType

from fewfire._errors import MissingExtensionWarning, invalid

# pip keeps the wheel it built without a compiler, and would install that again.
_REMEDY = (
    "Remedy: install a C++20 compiler (Debian: apt install g++), then "
    "pip install --force-reinstall --no-deps --no-cache-dir fewfire (in a clone: . for fewfire)."
)
MISSING = f"fewfire's C++ part is not installed. {_REMEDY}"
"""Why something without a NumPy version cannot run."""

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
    _check_instruction_set(_core)
    return _core


@cache
def _check_instruction_set(module: ModuleType) -> None:
    """C++ reads the variable itself and takes the best instruction set for a name that it cannot use."""
    wanted, usable = os.environ.get("FEWFIRE_ISA", ""), module.available_isas()
    if wanted and wanted not in usable:
        rule = f"must name an instruction set that this machine runs: {', '.join(map(repr, usable))}"
        raise invalid("FEWFIRE_ISA", rule, wanted, "unset the environment variable to use the best of them")


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
