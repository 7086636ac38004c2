"""Dask: batches go to the workers of any scheduler, so clusters are used through dask-jobqueue or dask-kubernetes.

The scheduler gives the batch of a worker that died to another one. Batches that were there when several workers died
are given up by it; their runs are tried again at the end, one at a time and alone, which finds the run that kills
workers. When the scheduler has given it up `TRIES` times while it was alone, it becomes a failed row.

An engine with devices of its own needs one worker per device. A cluster of this machine gets that, and worker i uses
device i; workers that are started by hand see one device each (CUDA_VISIBLE_DEVICES).

A scheduler that hangs is noticed: whenever nothing has ended for a while it has to report its number of workers, and
the sweep stops when no answer comes.
"""

from __future__ import annotations

import logging
import queue
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import ModuleType
from typing import Any

from fewfire._errors import ExecutorError, FewfireError
from fewfire._optional import require
from fewfire._threads import usable_cores
from fewfire.engines import DeviceEngine
from fewfire.engines._protocol import ENGINES
from fewfire.sweeps.executors._protocol import Work
from fewfire.sweeps.spec._run_spec import RunSpec
from fewfire.sweeps.store._row import Row, failed_row

_LOG = logging.getLogger(__name__)
_AHEAD = 3  # batches a worker's thread that are with the scheduler, so that none waits for the next
_CONNECT_SECONDS = 30
_HEARTBEAT_SECONDS = 30
_ANSWER_SECONDS = 60
_CLOSE_SECONDS = 10

TRIES = 2  # how often the scheduler may give up a run that was alone; each time takes several workers that died


class DaskExecutor:
    """A Dask cluster.

    Parameters
    ----------
    address : str
        Of a running scheduler, such as "tcp://10.0.0.1:8786", or "local" for a cluster of this machine's cores
        that lives as long as the sweep.
    """

    name = "dask"

    def __init__(self, address: str = "local") -> None:
        self.address = address
        self._distributed = require("distributed", "sweep", "the Dask executor")

    @contextmanager
    def lasting(self, engine: str) -> Iterator[DaskExecutor]:
        """An executor for several calls of `run`, for which a cluster of this machine is started once."""
        if self.address != "local":
            yield self
            return
        with _local_cluster(self._distributed, _workers_for(engine)) as cluster:
            yield DaskExecutor(cluster.scheduler_address)

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch as it ends."""
        distributed, work = self._distributed, Work(engine, threads=1)
        with _client(distributed, self.address, _workers_for(engine)) as client:
            waiting: dict[Any, list[RunSpec]] = {}
            suspects: list[RunSpec] = []
            deaths: Counter[str] = Counter()
            finished: queue.SimpleQueue[Any] = queue.SimpleQueue()

            def submit(batch: list[RunSpec]) -> None:
                texts = [spec.canonical for spec in batch]
                future = client.submit(on_worker, work, texts, pure=False)
                waiting[future] = batch
                future.add_done_callback(finished.put)

            def fill() -> None:
                room = _AHEAD * max(1, threads()) - len(waiting)
                for _ in range(room):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    submit(batch)

            def threads() -> int:
                found = self._threads(client)
                if not found:
                    _LOG.warning("no workers yet at the Dask scheduler %s; waiting for some", self.address)
                return found

            def first() -> Any:
                while True:
                    try:
                        return finished.get(timeout=_HEARTBEAT_SECONDS)
                    except queue.Empty:
                        threads()

            try:
                fill()
                while waiting or suspects:
                    alone = not waiting
                    if alone:
                        submit([suspects.pop()])
                    future = first()
                    batch = waiting.pop(future)
                    rows: list[Row] = []
                    try:
                        rows = future.result(timeout=_ANSWER_SECONDS)
                    except distributed.KilledWorker:
                        deaths[batch[0].hash] += alone
                        if deaths[batch[0].hash] < TRIES:
                            suspects += batch
                        else:
                            how = f"and so it went {TRIES} times while the run was alone there"
                            died = ExecutorError(f"the workers that had it died, {how}")
                            rows = [failed_row(batch[0], died, engine)]
                    fill()
                    if rows:
                        yield rows
            except FewfireError:
                raise
            except Exception as error:
                reason = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
                raise ExecutorError(
                    f"the Dask cluster at {self.address} cannot go on: {reason}. Finished runs are kept. "
                    "Remedy: see that the scheduler runs and that fewfire is installed on every worker."
                ) from error

    def _threads(self, client: Any) -> int:
        """How many runs the cluster trains at the same time; an error when its scheduler does not answer."""
        try:
            return sum(client.sync(client.scheduler.ncores, callback_timeout=_ANSWER_SECONDS).values())
        except TimeoutError:
            raise ExecutorError(
                f"the Dask scheduler at {self.address} has not answered for {_ANSWER_SECONDS} s. Finished runs are "
                "kept. Remedy: see whether it hangs, start it again, and repeat the sweep to go on."
            ) from None


def on_worker(work: Work, texts: list[str]) -> list[Row]:
    """The rows of a batch, on the device that a numbered worker is meant to use."""
    name = str(require("distributed", "sweep", "the Dask executor").get_worker().name)
    return (replace(work, device=int(name)) if name.isdecimal() else work)(texts)


def _workers_for(engine: str) -> int:
    """How many workers a cluster of this machine should have: one per device of the engine, else one per core."""
    chosen = ENGINES[engine](1)
    return len(chosen.devices()) if isinstance(chosen, DeviceEngine) and chosen.unusable() is None else usable_cores()


@contextmanager
def _client(distributed: ModuleType, address: str, workers: int) -> Iterator[Any]:
    """A client of the scheduler; a local cluster ends with it, and the scheduler drops what is left."""
    if address == "local":
        with (
            _local_cluster(distributed, workers) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except Exception as error:
        raise ExecutorError(
            f"no Dask scheduler answers at {address}: {error}. "
            "Remedy: start one with 'dask scheduler', or use a local cluster."
        ) from None
    try:
        yield client
    finally:
        with suppress(Exception):  # a scheduler that hangs does not answer
            client.close(timeout=_CLOSE_SECONDS)


def _local_cluster(distributed: ModuleType, workers: int) -> Any:
    try:
        return distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        )
    except RuntimeError as error:
        raise ExecutorError(
            f"a local Dask cluster cannot start: {error}. Remedy: in a script, put the call under "
            "if __name__ == '__main__', because Dask's workers import the script; or use the executor 'local'."
        ) from None
