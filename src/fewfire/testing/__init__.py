"""Conformance suites for third parties: subclass one in a test module and pytest runs it on your implementation.

`EngineConformance` holds what every engine must do. They need pytest, which fewfire itself does not install.
"""

from fewfire.testing._engines import PROBLEM, EngineConformance, assert_same_network, data, small_run

__all__ = [
    "PROBLEM",
    "EngineConformance",
    "assert_same_network",
    "data",
    "small_run",
]
