"""The obvious executor: one batch after the other in this process, on the engine's own threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire.experiments.executors._protocol import Work

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from fewfire.experiments._run_spec import RunSpec
    from fewfire.experiments.store import Row


class InlineExecutor:
    """No processes and no startup: for small sweeps, and for engines with a device of their own.

    Parameters
    ----------
    threads : int, optional
        Runs the cpu engine trains at the same time; all cores by default.
    """

    name = "inline"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch, in order."""
        work = Work(engine, self.threads)
        for batch in batches:
            yield work([spec.canonical for spec in batch])
