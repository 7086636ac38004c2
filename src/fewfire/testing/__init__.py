"""Conformance suites for third parties: subclass one in a test module and pytest runs it on your implementation.

They are what fewfire's own engines, stores, executors and half-space methods pass. They need pytest, which fewfire
itself does not install.
"""

from fewfire.testing._engines import PROBLEM, EngineConformance, assert_same_network, data, small_run
from fewfire.testing._executors import ExecutorConformance
from fewfire.testing._halfspace import HalfspaceConformance
from fewfire.testing._stores import StoreConformance

__all__ = [
    "PROBLEM",
    "EngineConformance",
    "ExecutorConformance",
    "HalfspaceConformance",
    "StoreConformance",
    "assert_same_network",
    "data",
    "small_run",
]
