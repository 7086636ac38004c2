"""What an executor takes and gives, and the reference implementation: specs in, rows out as they finish.

Every executor gives the same rows bit for bit, because each run is a pure function of its spec and of the engine.
"""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from fewfire import __version__
from fewfire._errors import EngineUnavailable, ExecutorError
from fewfire._registry import Registry
from fewfire.engines import DeviceEngine, Engine, Run, get_engine
from fewfire.engines._protocol import ENGINES
from fewfire.problems._base import PROBLEMS
from fewfire.sweeps.spec._run_spec import RunSpec
from fewfire.sweeps.store._row import Row, failed_row, row_of


@dataclass(frozen=True)
class Work:
    """What is done with a batch; it travels to workers, as do the canonical texts of the specs.

    `engine` is a name other than "auto": every worker has to use the same. A worker that has another `version` of
    fewfire refuses. `additions` are problems and engines that were registered from outside, (register, name, pickle): a
    worker registers them too. They travel as references, so they have to be defined in modules that the worker can
    import.
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
                    entry = pickle.loads(pickled)
                    if name not in known:  # the import of its module may have registered it
                        known.add(name, entry)
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


def run_batch(
    specs: Sequence[RunSpec], engine: Engine, progress: Callable[[int, int], None] | None = None
) -> list[Row]:
    """The rows of these runs, in their order; a run that raises an error becomes a failed row of its own.

    `progress` is the engine's; what it raises ends the batch, unless it is an `Exception`.
    """
    rows: dict[str, Row] = {}
    good: list[tuple[RunSpec, Run]] = []
    for spec in specs:
        try:
            good.append((spec, spec.describe()))
        except Exception as error:
            rows[spec.hash] = failed_row(spec, error, engine.name)
    rows |= {row.hash: row for row in _train(good, engine, progress)}
    return [rows[spec.hash] for spec in specs]


def _train(pairs: list[tuple[RunSpec, Run]], engine: Engine, progress: Callable[[int, int], None] | None) -> list[Row]:
    try:
        runs = [run for _, run in pairs]
        results = engine.train(runs, keep_networks=False, on_divergence="record", progress=progress)
    except EngineUnavailable:
        raise  # not an error of one run: every other one would end the same way
    except Exception as error:
        if len(pairs) > 1:  # find the run that raises it, by halves: a device's batches hold thousands
            middle = len(pairs) // 2
            return [row for part in (pairs[:middle], pairs[middle:]) for row in _train(part, engine, progress)]
        return [failed_row(pairs[0][0], error, engine.name)]
    return [row_of(spec, result) for (spec, _), result in zip(pairs, results, strict=True)]


class SharedBatches:
    """What the threads of an executor share: where batches come from, where rows go, and whether to stop."""

    def __init__(self, batches: Iterator[list[RunSpec]], work: Work) -> None:
        self.work = work
        self.stopped = threading.Event()
        self.answers: queue.SimpleQueue[list[Row] | BaseException | None] = queue.SimpleQueue()
        self._batches, self._lock = batches, threading.Lock()

    def next(self) -> list[RunSpec] | None:
        """The next batch; None when there is no more to do."""
        with self._lock:  # a generator serves one caller at a time
            return None if self.stopped.is_set() else next(self._batches, None)

    def serve(self, rows: Callable[[list[RunSpec]], list[Row] | None]) -> None:
        """Answer batches until none is left; an error is an answer too."""
        try:
            while (batch := self.next()) is not None:
                answer = rows(batch)
                if answer is not None:
                    self.answers.put(answer)
            self.answers.put(None)
        except BaseException as error:
            self.answers.put(error)

    def rows(self, threads: int) -> Generator[list[Row], None, None]:
        """What so many threads answer, until the last one is done or one ends in an error."""
        while threads:
            answer = self.answers.get()
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
