"""Optional packages: imported where they are used, with an error that describes how to get them."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from fewfire._errors import MissingDependency

INSTALLED_AS = {"PIL": "pillow", "cupy": "cupy-cuda13x"}
"""Packages that are imported by another name."""


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or raise naming the extra of fewfire that has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise MissingDependency(
            f"{purpose} needs the package {INSTALLED_AS.get(name, name)!r}, which is not installed. "
            f"Remedy: pip install 'fewfire[{extra}]'."
        ) from error


def is_installed(module: str) -> bool:
    """Whether `module` could be imported, without importing it."""
    return importlib.util.find_spec(module) is not None
