"""fewfire: two-layer networks in which little is active.

Subpackages load when they are first used, so that `import fewfire` stays fast and light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fewfire._errors import (
    ConvergenceWarning,
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
        robustness,
        tabular,
        theory,
        torch,
    )
    from fewfire._compressed_rows import CompressedRows
    from fewfire._random import Stream
    from fewfire.learners import (
        LowDegreeClassifier,
        LowDegreeRegressor,
        ParityNetClassifier,
        RobustClassifier,
        RobustRegressor,
        SparseActivationClassifier,
        SparseActivationRegressor,
        baselines,
    )
    from fewfire.robustness import attack, certify, robust_score
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
    "robustness",
    "tabular",
    "theory",
    "torch",
)
# Names that load the module they come from when they are first used.
_OWNERS = {
    "CompressedRows": "fewfire._compressed_rows",
    "LowDegreeClassifier": "fewfire.learners",
    "LowDegreeRegressor": "fewfire.learners",
    "ParityNetClassifier": "fewfire.learners",
    "RobustClassifier": "fewfire.learners",
    "RobustRegressor": "fewfire.learners",
    "SparseActivationClassifier": "fewfire.learners",
    "SparseActivationRegressor": "fewfire.learners",
    "SparseInitClassifier": "fewfire.tabular",
    "SparseInitRegressor": "fewfire.tabular",
    "Stream": "fewfire._random",
    "attack": "fewfire.robustness",
    "baselines": "fewfire.learners",
    "certify": "fewfire.robustness",
    "robust_score": "fewfire.robustness",
}

__all__ = [
    "CompressedRows",
    "ConvergenceWarning",
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
    "SparseActivationClassifier",
    "SparseActivationRegressor",
    "SparseInitClassifier",
    "SparseInitRegressor",
    "StoreError",
    "Stream",
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
    "robustness",
    "tabular",
    "theory",
    "torch",
]


if not TYPE_CHECKING:  # a type checker that saw it would take every misspelt name for one of ours

    def __getattr__(name: str) -> Any:
        if name in _SUBPACKAGES:
            return importlib.import_module(f"fewfire.{name}")
        if name in _OWNERS:
            return getattr(importlib.import_module(_OWNERS[name]), name)
        raise AttributeError(f"module 'fewfire' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES, *_OWNERS])
