"""Executors carry out batches of runs: in this process, in processes of this machine, or on a Dask cluster."""

from fewfire.experiments.executors._choose import choose_executor
from fewfire.experiments.executors._dask import DaskExecutor
from fewfire.experiments.executors._processes import ProcessExecutor
from fewfire.experiments.executors._protocol import Executor, InlineExecutor, Work

__all__ = ["DaskExecutor", "Executor", "InlineExecutor", "ProcessExecutor", "Work", "choose_executor"]
