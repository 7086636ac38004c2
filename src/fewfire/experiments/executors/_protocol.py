"""What an executor takes and gives, and the obvious one: batches of specs in, their rows out as they finish.

Every executor gives the same rows bit for bit, because each run is a pure function of its spec and of the engine.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fewfire import __version__
from fewfire._errors import ExecutorError
from fewfire.engines import ENGINES, DeviceEngine, get_engine
from fewfire.experiments.executors._batch import run_batch
from fewfire.experiments.spec import RunSpec
from fewfire.problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from queue import SimpleQueue

    from fewfire._registry import Registry
    from fewfire.experiments.store import Row


@dataclass(frozen=True)
class Work:
    """What is done with a batch; it travels to workers, as do the canonical texts of the specs.

    Parameters
    ----------
    engine : str
        A named engine, not "auto": every worker has to use the same.
    threads : int, optional
        How many runs one call may train at the same time; all cores by default.
    device : int, optional
        Which of its devices the engine is to use, where it has several.
    version : str
        The version of fewfire that asks for the work; a worker that has another one refuses.
    additions : tuple of (register, name, pickle)
        Problems and engines that were registered from outside: a worker registers them too. They travel as references,
        so they have to be defined in modules that the worker can import.
    """

    engine: str
    threads: int | None = None
    device: int | None = None
    version: str = field(default=__version__)
    additions: tuple[tuple[str, str, bytes], ...] = field(default_factory=lambda: tuple(_additions()))

    def __call__(self, texts: Sequence[str]) -> list[Row]:
        """The rows of the runs with these canonical texts."""
        if self.version != __version__:
            raise ExecutorError(
                f"a worker has fewfire {__version__}, but the sweep was started with {self.version}. "
                "Remedy: install the same version everywhere."
            )
        self._register()
        return self.rows([RunSpec.from_json(text) for text in texts])

    def _register(self) -> None:
        for register, name, pickled in self.additions:
            known = _REGISTERS[register]
            if name not in known:
                try:
                    known.add(name, pickle.loads(pickled))
                except (ImportError, AttributeError) as error:
                    raise ExecutorError(
                        f"a worker cannot import the {register} {name!r} ({error}). Remedy: define it in a module that "
                        "is installed where workers run."
                    ) from None

    def rows(self, specs: Sequence[RunSpec], progress: Callable[[int, int], None] | None = None) -> list[Row]:
        """The rows of these runs, for callers in the same process."""
        if self.device is not None:
            chosen = ENGINES[self.engine](self.threads)
            if isinstance(chosen, DeviceEngine):
                chosen.use_device(self.device)  # before anything else touches another one
        return run_batch(specs, get_engine(self.engine, self.threads), progress)


_REGISTERS: dict[str, Registry[Any]] = {"problem": PROBLEMS, "engine": ENGINES}


def _additions() -> Iterator[tuple[str, str, bytes]]:
    """What was registered from outside and can be sent; a class of a notebook or a lambda cannot, and is left out."""
    for register, known in _REGISTERS.items():
        for name, entry in known.added().items():
            with suppress(pickle.PicklingError, AttributeError, TypeError):
                yield register, name, pickle.dumps(entry)


def rows_from(answers: SimpleQueue[list[Row] | BaseException | None], threads: int) -> Generator[list[Row], None, None]:
    """What so many threads put into a queue: rows, an error that ends it all, or None from one that is out of work."""
    while threads:
        answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            threads -= 1
        else:
            yield answer


@runtime_checkable
class Executor(Protocol):
    """Carries out batches."""

    name: str

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch as it ends; closing the iterator stops the rest."""
        ...


class InlineExecutor:
    """One batch after the other in this process: for small sweeps.

    Parameters
    ----------
    threads : int, optional
        How many runs the engine may train at the same time; all cores by default.
    """

    name = "inline"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def run(self, batches: Iterator[list[RunSpec]], engine: str) -> Generator[list[Row], None, None]:
        """The rows of each batch, in order."""
        work = Work(engine, self.threads)
        for batch in batches:
            yield work.rows(batch)
