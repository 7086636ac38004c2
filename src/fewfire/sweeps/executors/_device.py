"""A device that is always busy: three threads of this process share it.

While the runs of one thread train, the others make rows of those that ended before and describe the next batch, which
follows without a pause; what ends is kept by the caller meanwhile.

Ctrl-C does not reach threads. When the caller stops, the engine's next call of `progress` ends what is under way.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from functools import partial

from fewfire.sweeps.executors._protocol import SharedBatches, Work
from fewfire.sweeps.spec._run_spec import RunSpec
from fewfire.sweeps.store._row import Row

THREADS = 3
_END_SECONDS = 2.0  # seconds for a thread to end; an engine that does not report progress may take longer


class DeviceExecutor:
    """Batches one after the other on one device, the engine's choice, prepared during the training."""

    name = "device"

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch as it ends."""
        work = Work(engine)
        shared = SharedBatches(batches, work)

        def look(done: int, total: int) -> None:
            if shared.stopped.is_set():
                raise _Stopped

        serve = partial(shared.serve, partial(work.rows, progress=look))
        threads = [threading.Thread(target=serve, daemon=True) for _ in range(THREADS)]
        try:
            for thread in threads:
                thread.start()
            yield from shared.rows(THREADS)
        finally:
            shared.stopped.set()
            for thread in threads:
                if thread.ident is not None:  # Ctrl-C may come before the last one has started
                    thread.join(_END_SECONDS)


class _Stopped(BaseException):
    """The caller has stopped; no `Exception`, which would be taken for an error of a run."""
