"""fewfire: two-layer networks in which little is active.

Subpackages load when they are first used, so that `import fewfire` stays fast and light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fewfire._errors import (
    DataUnavailable,
    DivergenceError,
    EngineUnavailable,
    ExecutorError,
    FewfireError,
    FewfireWarning,
    FileFormatError,
    InvalidArgument,
    MissingDependency,
    MissingExtensionWarning,
    StoreError,
)

if TYPE_CHECKING:
    from fewfire import (
        engines,
        experiments,
        fourier,
        halfspace,
        learners,
        networks,
        problems,
        report,
        tabular,
        theory,
        torch,
    )
    from fewfire.learners import (
        LowDegreeClassifier,
        LowDegreeRegressor,
        ParityNetClassifier,
        RobustClassifier,
        RobustRegressor,
        attack,
        baselines,
        certify,
        robust_score,
    )
    from fewfire.tabular import SparseInitClassifier, SparseInitRegressor

__version__ = "0.1.0"

_SUBPACKAGES = (
    "engines",
    "experiments",
    "fourier",
    "halfspace",
    "learners",
    "networks",
    "problems",
    "report",
    "tabular",
    "theory",
    "torch",
)
_LEARNERS = (
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "ParityNetClassifier",
    "RobustClassifier",
    "RobustRegressor",
    "attack",
    "baselines",
    "certify",
    "robust_score",
)
_TABULAR = ("SparseInitClassifier", "SparseInitRegressor")

__all__ = [
    "DataUnavailable",
    "DivergenceError",
    "EngineUnavailable",
    "ExecutorError",
    "FewfireError",
    "FewfireWarning",
    "FileFormatError",
    "InvalidArgument",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "MissingDependency",
    "MissingExtensionWarning",
    "ParityNetClassifier",
    "RobustClassifier",
    "RobustRegressor",
    "SparseInitClassifier",
    "SparseInitRegressor",
    "StoreError",
    "attack",
    "baselines",
    "certify",
    "engines",
    "experiments",
    "fourier",
    "halfspace",
    "learners",
    "networks",
    "problems",
    "report",
    "robust_score",
    "tabular",
    "theory",
    "torch",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"fewfire.{name}")
    if name in _LEARNERS:
        return getattr(importlib.import_module("fewfire.learners"), name)
    if name in _TABULAR:
        return getattr(importlib.import_module("fewfire.tabular"), name)
    raise AttributeError(f"module 'fewfire' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES, *_LEARNERS, *_TABULAR])
