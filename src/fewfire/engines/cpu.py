"""The CPU engine: many runs side by side in C++, one core a run, weights resident for the whole training.

csrc/kernels/train.cpp does the work. Python hands over the data (signs as bits, other inputs as float32), lets the
threads run for a fraction of a second at a time, so that Ctrl-C and progress work, and collects what has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._bits import pack
from fewfire._cores import thread_count
from fewfire._errors import DivergenceError, invalid
from fewfire._extension import MESSAGE, load
from fewfire._validate import check_choice
from fewfire.engines._divergence import divergence
from fewfire.engines._protocol import Counters, History, Result, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._types import AnyArray
    from fewfire.networks import TwoLayer

_SLICE_SECONDS = 0.2
_ONLINE_SIGNS = 1 << 22  # how many inputs of fresh examples are drawn ahead for an online run


class CpuEngine:
    """C++ on all cores, exact to rounding: the same minibatches and updates as the reference engine.

    Parameters
    ----------
    threads : int, optional
        Runs trained at the same time; all cores by default.
    """

    name = "cpu"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)

    def unusable(self) -> str | None:
        """None when the C++ part is installed."""
        return MESSAGE if load() is None else None

    def train(
        self,
        runs: Sequence[Run],
        *,
        on_divergence: str = "raise",
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Result]:
        """Train the runs; results come in the order of the runs, whatever order they end in."""
        check_choice("on_divergence", on_divergence, ("raise", "record"))
        for run in runs:
            if run.network.dtype != np.float32:
                raise invalid("network", "must be float32 for the cpu engine", f"dtype {run.network.dtype}",
                              "use the reference engine, or cast the weights")  # fmt: skip
        core: Any = load()
        results: dict[int, Result] = {}
        total, finished_steps = sum(run.schedule.steps for run in runs), 0
        packed: dict[int, AnyArray] = {}
        waiting, active = list(enumerate(runs))[::-1], dict[int, _Job]()
        while waiting or active:
            # A few runs more than threads are kept ready; the rest wait without holding memory.
            while waiting and len(active) < 4 * self.threads:
                index, run = waiting.pop()
                active[index] = _Job.start(core, run, packed)
            for job in active.values():
                job.refill()
            core.advance([job.trainer for job in active.values()], _SLICE_SECONDS, self.threads)
            for index in [index for index, job in active.items() if job.trainer.stopped]:
                job = active.pop(index)
                results[index] = result = job.result()
                if result.divergence is not None and on_divergence == "raise":
                    raise result.divergence
                finished_steps += job.run.schedule.steps
            if progress is not None:
                progress(finished_steps + sum(job.trainer.step for job in active.values()), total)
        return [results[index] for index in range(len(runs))]


@dataclass
class _Job:
    """One run and its C++ state."""

    run: Run
    trainer: Any

    @classmethod
    def start(cls, core: Any, run: Run, packed: dict[int, AnyArray]) -> _Job:
        network, schedule, stream = run.network, run.schedule, run.stream
        labels = [y for y in (run.y, run.y_test) if y is not None]
        trainer = core.Trainer(
            hidden=network.hidden,
            bias=network.bias,
            output=network.output,
            offset=float(network.offset),
            loss=schedule.loss,
            activation=network.activation.name,
            threshold=float(network.activation.threshold),
            sampling=schedule.sampling if run.source is None else "online",
            boolean_labels=all(bool(np.all(np.abs(y) == 1)) for y in labels),
            key=int(stream.key),
            batch_stream=stream.id,
            epoch_stream=stream.child("epochs").id,
            stop_error=-1.0 if schedule.stop_error is None else schedule.stop_error,
            checkpoints=schedule.checkpoints(),
            support=list(run.support or ()),
        )
        for phase in schedule.phases:
            tables = phase.rates(), phase.keeps(), phase.truncations()
            if all((table == table[0]).all() for table in tables):
                tables = tables[0][:1], tables[1][:1], tables[2][:1]
            trainer.add_phase(phase.steps, phase.batch_size or 0, *map(np.ascontiguousarray, tables))
        job = cls(run, trainer)
        for X, y, test in ((run.X, run.y, False), (run.X_test, run.y_test, True)):
            if X is not None and y is not None:
                job._hand_over(X, y, test, packed)
        return job

    def refill(self) -> None:
        """Draw the next stretch of fresh examples when an online run has used up the last."""
        run, trainer = self.run, self.trainer
        if run.source is None or not trainer.needs_rows:
            return
        batch = max(phase.batch_size or 0 for phase in run.schedule.phases)
        rows = max(1, _ONLINE_SIGNS // (run.network.inputs * batch)) * batch
        left = sum(phase.steps * (phase.batch_size or 0) for phase in run.schedule.phases) - trainer.position
        rows = min(rows, left)  # short runs would otherwise spend their time on examples that nobody sees
        X, y = run.source.sample(rows, run.stream.child("online"), start=trainer.position)
        self._hand_over(np.asarray(X), np.asarray(y), False, {})

    def _hand_over(self, X: AnyArray, y: AnyArray, test: bool, packed: dict[int, AnyArray]) -> None:
        labels = np.ascontiguousarray(y, dtype=np.float32)
        if X.dtype == np.int8 and bool(np.all(np.abs(X) == 1)):
            if id(X) not in packed:  # trials of a sweep share their data
                packed[id(X)] = pack(X)
            self.trainer.set_bits(packed[id(X)], labels, test)
        else:
            self.trainer.set_rows(np.ascontiguousarray(X, dtype=np.float32), labels, test)

    def result(self) -> Result:
        """What the run ended with; a diverged run gives back its initial network."""
        trainer, initial = self.trainer, self.run.network
        error: DivergenceError | None = None
        network: TwoLayer = initial
        if trainer.stopped == "diverged":
            error = divergence(trainer.diverged_step, trainer.diverged_rate)
        else:
            hidden = np.empty((initial.width, initial.inputs), dtype=np.float32)
            bias, output = np.empty(initial.width, dtype=np.float32), np.empty(initial.width, dtype=np.float32)
            trainer.export(hidden, bias, output)
            network = initial.with_parameters(hidden=hidden, bias=bias, output=output, offset=trainer.offset)
        counters = Counters(*trainer.counters)
        return Result(network, History.of(trainer.records), counters, trainer.stopped, CpuEngine.name, error)
