"""Which executor carries out a sweep."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fewfire._cores import usable_cores
from fewfire._errors import invalid
from fewfire._validate import did_you_mean
from fewfire.engines import DeviceEngine
from fewfire.experiments.executors._dask import DaskExecutor
from fewfire.experiments.executors._device import DeviceExecutor
from fewfire.experiments.executors._processes import ProcessExecutor
from fewfire.experiments.executors._protocol import Executor, InlineExecutor

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire.engines import Engine

NAMED: dict[str, Callable[[int | None], Executor]] = {
    "inline": InlineExecutor,
    "device": lambda workers: DeviceExecutor(),
    "processes": ProcessExecutor,
    "dask": lambda workers: DaskExecutor("local"),
}
SMALL = 1e11
"""Multiply-adds that are over before worker processes would have started."""


def choose_executor(executor: str | Executor, engine: Engine, work: float, workers: int | None = None) -> Executor:
    """The executor that was asked for; "local" is decided by the engine, the cores and the amount of work.

    An engine with devices gets one process per device, or one thread beside this one where it has one device.

    Parameters
    ----------
    executor : "local", "inline", "device", "processes", "dask", a scheduler's address (with "://"), or an Executor
    engine : Engine
    work : float
        Multiply-adds of all runs together, as `cost` counts them.
    workers : int, optional
        Processes of this machine; one per core or device by default.
    """
    if isinstance(executor, Executor):
        return executor
    if executor in ("local", "processes") and isinstance(engine, DeviceEngine):
        devices = min(len(engine.devices()), workers or sys.maxsize)
        alone = devices == 1 and executor == "local"
        return DeviceExecutor() if alone else ProcessExecutor(devices, devices=True)
    if executor == "local":
        alone = engine.side_by_side or work < SMALL or (workers or usable_cores()) == 1
        return InlineExecutor(workers) if alone else ProcessExecutor(workers)
    if executor in NAMED:
        return NAMED[executor](workers)
    if isinstance(executor, str) and "://" in executor:
        return DaskExecutor(executor)
    choices = ("local", *NAMED)
    rule = f"must be one of {', '.join(map(repr, choices))} or the address of a Dask scheduler"
    raise invalid("executor", rule, executor, did_you_mean(executor, choices))
