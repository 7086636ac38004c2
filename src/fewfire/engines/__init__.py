"""Engines train many independent runs: `reference` is the obvious NumPy twin of every fast one.

`robust` trains one wide network on examples that an adversary moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._lazy import SUBPACKAGES, lazy_names
from fewfire.engines._losses import LOSSES, Gradients, Loss, LossName, error_rate, get_loss, gradients
from fewfire.engines._population import (
    Correlations,
    fourier_gap,
    population_correlations,
    sample_correlations,
)
from fewfire.engines._protocol import (
    DEVICE_WORK,
    ENGINES,
    DeviceEngine,
    Engine,
    Pace,
    engine_report,
    get_engine,
    register_engine,
    unregister_engine,
)
from fewfire.engines._result import ARITHMETIC, MEASURED_ROWS, Counters, History, Result, divergence
from fewfire.engines._run import Run, Sample, Source, Start
from fewfire.engines._schedule import LAYERS, PerLayer, Phase, Schedule, draw_batch
from fewfire.engines.cpu import CpuEngine
from fewfire.engines.reference import ReferenceEngine

if TYPE_CHECKING:
    from fewfire.engines import robust


def _cuda_engine(threads: int | None) -> Engine:
    from fewfire.engines.cuda import CudaEngine  # loaded when it is asked for

    return CudaEngine()


# "auto" takes the first one that can run, and where there is much to do one with a device of its own.
register_engine(CpuEngine.name, CpuEngine, own=True)
register_engine("cuda", _cuda_engine, own=True)
register_engine(ReferenceEngine.name, lambda threads: ReferenceEngine(), own=True)

__all__ = [
    "ARITHMETIC",
    "DEVICE_WORK",
    "ENGINES",
    "LAYERS",
    "LOSSES",
    "MEASURED_ROWS",
    "Correlations",
    "Counters",
    "CpuEngine",
    "DeviceEngine",
    "Engine",
    "Gradients",
    "History",
    "Loss",
    "LossName",
    "Pace",
    "PerLayer",
    "Phase",
    "ReferenceEngine",
    "Result",
    "Run",
    "Sample",
    "Schedule",
    "Source",
    "Start",
    "divergence",
    "draw_batch",
    "engine_report",
    "error_rate",
    "fourier_gap",
    "get_engine",
    "get_loss",
    "gradients",
    "population_correlations",
    "register_engine",
    "robust",
    "sample_correlations",
    "unregister_engine",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {SUBPACKAGES: "robust"})  # it needs SciPy
