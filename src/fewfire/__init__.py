"""fewfire: networks in which little is active.

Subpackages load when they are first used, so that `import fewfire` stays fast and light.
"""

from typing import TYPE_CHECKING

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
from fewfire._lazy import SUBPACKAGES, lazy_names

if TYPE_CHECKING:
    from fewfire import (
        engines,
        fourier,
        halfspace,
        learners,
        networks,
        papers,
        problems,
        report,
        robustness,
        sweeps,
        tabular,
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
    from fewfire.tabular import TabularClassifier, TabularRegressor

__version__ = "0.1.0"

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
    "StoreError",
    "Stream",
    "TabularClassifier",
    "TabularRegressor",
    "attack",
    "baselines",
    "certify",
    "engines",
    "fourier",
    "halfspace",
    "learners",
    "networks",
    "papers",
    "problems",
    "report",
    "robust_score",
    "robustness",
    "sweeps",
    "tabular",
    "torch",
]

if not TYPE_CHECKING:  # a type checker that saw it would take every misspelt name for one of ours
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            SUBPACKAGES: (
                "engines fourier halfspace learners networks papers problems report robustness sweeps tabular torch"
            ),
            "_compressed_rows": "CompressedRows",
            "_random": "Stream",
            "learners": (
                "LowDegreeClassifier LowDegreeRegressor ParityNetClassifier RobustClassifier RobustRegressor "
                "SparseActivationClassifier SparseActivationRegressor baselines"
            ),
            "robustness": "attack certify robust_score",
            "tabular": "TabularClassifier TabularRegressor",
        },
    )
