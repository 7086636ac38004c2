"""Executors carry out batches of runs: in this process, on its device, in processes of this machine, or with Dask."""

from fewfire.experiments.executors._choose import choose_executor
from fewfire.experiments.executors._dask import DaskExecutor
from fewfire.experiments.executors._device import DeviceExecutor
from fewfire.experiments.executors._processes import ProcessExecutor
from fewfire.experiments.executors._protocol import Executor, InlineExecutor, Work

__all__ = ["DaskExecutor", "DeviceExecutor", "Executor", "InlineExecutor", "ProcessExecutor", "Work", "choose_executor"]
