"""Public names that load their module when they are first used: the one way in which packages here are lazy (PEP 562).

A lazy package imports its names for type checkers alone, lists them in `__all__`, and gives here the module of
each::

    if TYPE_CHECKING:
        from fewfire.sweeps.spec._sweep import Sweep

    __all__ = ["Sweep"]

    if not TYPE_CHECKING:  # a type checker that saw it would take every misspelt name for one of ours
        __getattr__, __dir__ = lazy_names(__name__, {"spec._sweep": "Sweep"})

A test holds the three lists together. A package is lazy where its names need different things, some of which are slow
to load; elsewhere plain imports say it all.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

SUBPACKAGES = ""
"""The key of names that are packages or modules of the package itself."""


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names load when they are first used.

    `modules` has the names, with spaces between them, by the module that they come from, written as after `from .`;
    under `SUBPACKAGES` the modules themselves.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        here = sys.modules[package]
        if name not in homes:
            known = ", ".join(getattr(here, "__all__", ()))
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {known}")
        home = homes[name]
        if home == SUBPACKAGES:
            return importlib.import_module(f"{package}.{name}")
        found = getattr(importlib.import_module(f".{home}", package), name)
        setattr(here, name, found)  # the next use finds it without asking here
        return found

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return __getattr__, __dir__
