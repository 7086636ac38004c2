"""Conformance suites for third parties: subclass one in a test module and pytest runs it on your implementation.

They are what fewfire's own engines, stores, executors and half-space methods pass. They need pytest, which fewfire
itself does not install.
"""

from fewfire.testing._engines import EngineConformance
from fewfire.testing._executors import ExecutorConformance
from fewfire.testing._halfspace import HalfspaceConformance
from fewfire.testing._stores import StoreConformance

__all__ = ["EngineConformance", "ExecutorConformance", "HalfspaceConformance", "StoreConformance"]
