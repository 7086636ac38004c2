"""Executors train batches of runs: in this process, on its device, in processes of this machine, or with Dask."""

from fewfire.sweeps.executors._dask import DaskExecutor
from fewfire.sweeps.executors._processes import ProcessExecutor
from fewfire.sweeps.executors._protocol import Executor, InlineExecutor

__all__ = ["DaskExecutor", "Executor", "InlineExecutor", "ProcessExecutor"]
