"""Access to the C++ part, `fewfire._core`, which may be missing.

Code that has a fast twin asks `core()` and falls back to its NumPy twin on None. The first such
fallback in a process warns, once.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING

from fewfire._errors import MissingExtensionWarning

if TYPE_CHECKING:
    from types import ModuleType

MESSAGE = (
    "fewfire's C++ part is not installed, so the NumPy reference code serves: results are the same, only slower. "
    "Remedy: install a C++20 compiler (Debian: apt install g++) and reinstall fewfire."
)


def load() -> ModuleType | None:
    """The extension module, or None when it is not installed; never warns."""
    try:
        from fewfire import _core
    except ImportError:
        return None
    return _core


@cache
def core() -> ModuleType | None:
    """The extension module, or None with one warning per process."""
    module = load()
    if module is None:
        warnings.warn(MESSAGE, MissingExtensionWarning, stacklevel=3)
    return module
