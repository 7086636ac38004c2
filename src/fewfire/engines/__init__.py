"""Engines train many independent runs: `reference` is the NumPy implementation that the fast ones are tested against.

`robust` trains one wide network on examples that an adversary moves.
"""

from typing import TYPE_CHECKING

from fewfire._lazy import SUBPACKAGES, lazy_names
from fewfire.engines._gradients import gradients
from fewfire.engines._protocol import DeviceEngine, Engine, get_engine, register_engine, unregister_engine
from fewfire.engines._result import MEASURED_ROWS, Counters, History, Result, divergence
from fewfire.engines._run import PerLayer, Phase, Run, Sample, Schedule, Start
from fewfire.engines.cpu import CpuEngine
from fewfire.engines.reference import ReferenceEngine

if TYPE_CHECKING:
    from fewfire.engines import robust

__all__ = [
    "MEASURED_ROWS",
    "Counters",
    "CpuEngine",
    "DeviceEngine",
    "Engine",
    "History",
    "PerLayer",
    "Phase",
    "ReferenceEngine",
    "Result",
    "Run",
    "Sample",
    "Schedule",
    "Start",
    "divergence",
    "get_engine",
    "gradients",
    "register_engine",
    "robust",
    "unregister_engine",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {SUBPACKAGES: "robust"})  # it needs SciPy
