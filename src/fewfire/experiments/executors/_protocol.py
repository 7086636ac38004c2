"""What an executor takes and gives: batches of specs in, their rows out as they finish, in any order.

Every executor gives the same rows bit for bit, because each run is a pure function of its spec and of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fewfire import __version__
from fewfire._errors import ExecutorError
from fewfire.engines import CpuEngine, get_engine
from fewfire.experiments._run import run_batch
from fewfire.experiments._run_spec import RunSpec

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from fewfire.experiments.store import Row


@dataclass(frozen=True)
class Work:
    """What is done with a batch; it travels to workers, as do the canonical texts of the specs.

    Parameters
    ----------
    engine : str
        A named engine, not "auto": every worker has to use the same.
    threads : int, optional
        For the cpu engine: runs trained at the same time by one call; all cores by default.
    version : str
        The version of fewfire that asks for the work; a worker that has another one refuses.
    """

    engine: str
    threads: int | None = None
    version: str = field(default=__version__)

    def __call__(self, texts: Sequence[str]) -> list[Row]:
        """The rows of the runs with these canonical texts."""
        if self.version != __version__:
            raise ExecutorError(
                f"a worker has fewfire {__version__}, but the sweep was started with {self.version}. "
                "Remedy: install the same version everywhere."
            )
        engine = get_engine(self.engine)
        if self.engine == "cpu":
            engine = CpuEngine(self.threads)
        return run_batch([RunSpec.from_json(text) for text in texts], engine)


@runtime_checkable
class Executor(Protocol):
    """Carries out batches."""

    name: str

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch as it ends; closing the iterator stops the rest."""
        ...
