"""fewfire: two-layer networks in which little is active.

Subpackages load when they are first used, so that `import fewfire` stays fast and light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fewfire._errors import (
    DivergenceError,
    EngineUnavailable,
    FewfireError,
    FewfireWarning,
    FileFormatError,
    InvalidArgument,
    MissingDependency,
    MissingExtensionWarning,
)

if TYPE_CHECKING:
    from fewfire import engines, fourier, networks, problems

__version__ = "0.1.0"

_SUBPACKAGES = ("engines", "fourier", "networks", "problems")

__all__ = [
    "DivergenceError",
    "EngineUnavailable",
    "FewfireError",
    "FewfireWarning",
    "FileFormatError",
    "InvalidArgument",
    "MissingDependency",
    "MissingExtensionWarning",
    "engines",
    "fourier",
    "networks",
    "problems",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"fewfire.{name}")
    raise AttributeError(f"module 'fewfire' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES])
