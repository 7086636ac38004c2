"""Dask: batches go to the workers of any scheduler, so clusters are used through dask-jobqueue or dask-kubernetes.

The scheduler gives the batch of a worker that died to another one. Batches that were there when several workers died
are given up by it; their runs are tried once more at the end, one at a time and alone, so that the run that kills
workers is told from those that stood beside it. It becomes a failed row.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fewfire._cores import usable_cores
from fewfire._errors import ExecutorError, FewfireError
from fewfire._optional import require
from fewfire.experiments.executors._protocol import Work
from fewfire.experiments.store import environment_text, failed_row

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from types import ModuleType

    from fewfire.experiments.spec import RunSpec
    from fewfire.experiments.store import Row

_AHEAD = 3  # batches a worker's thread that are with the scheduler, so that none waits for the next
_CONNECT_SECONDS = 30


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

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch as it ends."""
        distributed, work = self._distributed, Work(engine, threads=1)
        with _client(distributed, self.address) as client:
            waiting: dict[Any, list[RunSpec]] = {}
            suspects: list[RunSpec] = []
            finished = distributed.as_completed([], loop=client.loop)

            def submit(batch: list[RunSpec]) -> None:
                texts = [spec.canonical for spec in batch]
                future = client.submit(work, texts, pure=False)
                waiting[future] = batch
                finished.add(future)

            def fill() -> None:
                room = _AHEAD * max(1, sum(client.nthreads().values())) - len(waiting)
                for _ in range(room):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    submit(batch)

            try:
                fill()
                while waiting or suspects:
                    alone = not waiting
                    if alone:
                        submit([suspects.pop()])
                    future = next(finished)
                    batch = waiting.pop(future)
                    try:
                        rows = future.result()
                    except distributed.KilledWorker as error:
                        rows = [failed_row(batch[0], error, engine, environment_text())] if alone else []
                        suspects += [] if alone else batch
                    fill()
                    if rows:
                        yield rows
            except FewfireError:
                raise
            except Exception as error:
                raise self._unusable(error) from error
            finally:
                client.cancel(list(waiting), force=True)

    def _unusable(self, error: Exception) -> ExecutorError:
        reason = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
        return ExecutorError(
            f"the Dask cluster at {self.address} cannot go on: {reason}. "
            "Finished runs are kept. Remedy: see that the scheduler runs and that fewfire is installed on every worker."
        )


@contextmanager
def _client(distributed: ModuleType, address: str) -> Iterator[Any]:
    """A client of the scheduler; a local cluster ends with it."""
    if address == "local":
        with _local_cluster(distributed) as cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except Exception as error:
        raise ExecutorError(
            f"no Dask scheduler answers at {address}: {error}. "
            "Remedy: start one with 'dask scheduler', or use a local cluster."
        ) from None
    with client:
        yield client


def _local_cluster(distributed: ModuleType) -> Any:
    try:
        return distributed.LocalCluster(
            n_workers=usable_cores(), threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        )
    except RuntimeError as error:
        raise ExecutorError(
            f"a local Dask cluster cannot start: {error}. Remedy: in a script, put the call under "
            "if __name__ == '__main__', because Dask's workers import the script; or use the executor 'local'."
        ) from None
