"""Engines train many independent runs: `reference` is the obvious NumPy twin of every fast one.

`robust` trains one wide network on examples that an adversary moves.
"""

from fewfire.engines import robust
from fewfire.engines._gradients import Gradients, gradients
from fewfire.engines._losses import LOSSES, Loss, error_rate, get_loss
from fewfire.engines._population import (
    Correlations,
    fourier_gap,
    population_correlations,
    sample_correlations,
)
from fewfire.engines._protocol import Counters, Engine, History, Result, Run, Source
from fewfire.engines._registry import engine_report, get_engine
from fewfire.engines._schedule import LAYERS, PerLayer, Phase, Schedule
from fewfire.engines.cpu import CpuEngine
from fewfire.engines.reference import ReferenceEngine

__all__ = [
    "LAYERS",
    "LOSSES",
    "Correlations",
    "Counters",
    "CpuEngine",
    "Engine",
    "Gradients",
    "History",
    "Loss",
    "PerLayer",
    "Phase",
    "ReferenceEngine",
    "Result",
    "Run",
    "Schedule",
    "Source",
    "engine_report",
    "error_rate",
    "fourier_gap",
    "get_engine",
    "get_loss",
    "gradients",
    "population_correlations",
    "robust",
    "sample_correlations",
]
