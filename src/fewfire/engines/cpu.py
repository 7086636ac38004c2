"""The CPU engine: many runs concurrently in C++, one core per run, weights resident for the whole training.

csrc/kernels/train.cpp does the work. Python draws a run when its turn comes, hands over the data (signs as bits, other
inputs as float32), lets the threads run for a fraction of a second at a time, so that Ctrl-C and progress work, and
collects what has ended.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from fewfire._bits import pack
from fewfire._errors import DivergenceError, InvalidArgument
from fewfire._extension import MISSING, load
from fewfire._threads import thread_count
from fewfire.engines._base import OwnEngine, Trained
from fewfire.engines._result import Counters, History, Result, Stopped, divergence
from fewfire.networks import TwoLayer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._types import AnyArray
    from fewfire.engines._run import Run

_SLICE_SECONDS = 0.2
ARRAY_BYTES = 1 << 28
"""Bytes of drawn networks and data beyond which no run is drawn ahead of its thread."""

_ONLINE_SIGNS = 1 << 22  # how many inputs of fresh examples are drawn ahead for an online run


class CpuEngine(OwnEngine):
    """C++ on all cores, exact to rounding: the same minibatches and updates as the reference engine.

    Parameters
    ----------
    threads : int, optional
        Runs trained at the same time; all cores by default.
    """

    name: ClassVar = "cpu"
    # About two seconds of one core, so that little is in flight when a sweep is stopped and scheduling costs nothing.
    batch_cost: ClassVar = 2e10
    batch_runs: ClassVar = 64

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)

    def unusable(self) -> str | None:
        """None when the C++ part is installed."""
        return MISSING if load() is None else None

    def _train(self, runs: Sequence[Run], keep_networks: bool, notify: Callable[[int], object]) -> Trained:
        core: Any = load()
        packed: dict[int, AnyArray] = {}
        finished_steps = 0
        waiting, active = list(enumerate(runs))[::-1], dict[int, _Job]()
        while waiting or active:
            # Each thread has a run, and a few more are kept ready where they are small; the rest wait as described.
            while waiting and len(active) < 4 * self.threads:
                drawn_bytes = sum(job.run.array_bytes for job in active.values())
                if len(active) >= self.threads and drawn_bytes + waiting[-1][1].array_bytes > ARRAY_BYTES:
                    break
                index, run = waiting.pop()
                active[index] = _job(core, run, run.drawn(self), keep_networks, packed)
            for job in active.values():
                job.refill()
            core.advance([job.trainer for job in active.values()], _SLICE_SECONDS, self.threads)
            for index in [index for index, job in active.items() if job.trainer.stopped]:
                job = active.pop(index)
                yield index, job.result()
                finished_steps += job.run.schedule.steps
            notify(finished_steps + sum(job.trainer.step for job in active.values()))


def _job(core: Any, run: Run, drawn: Run, keep_network: bool, packed: dict[int, AnyArray]) -> _Job:
    """A run with its C++ state; a table of signs that several runs were given is `packed` once."""
    network, schedule, stream = drawn.network, run.schedule, run.stream
    assert isinstance(network, TwoLayer)
    labels = [column for column in (drawn.y, drawn.y_test) if column is not None]
    trainer = core.Trainer(
        hidden=network.hidden,
        bias=network.bias,
        output=network.output,
        offset=float(network.offset),
        loss=schedule.loss,
        activation=network.activation.name,
        threshold=float(network.activation.threshold),
        sampling=schedule.sampling if run.source is None else "online",
        boolean_labels=all(bool(np.all(np.abs(column) == 1)) for column in labels),
        key=int(stream.key),
        batch_stream=stream.id,
        epoch_stream=stream.child("epochs").id,
        stop_error=-1.0 if schedule.stop_error is None else schedule.stop_error,
        checkpoints=schedule.checkpoints(),
        support=list(run.support or ()),
    )
    for phase in schedule.phases:
        trainer.add_phase(phase.steps, phase.batch_size or 0, *phase.tables())
    for table, column, test in ((drawn.X, drawn.y, False), (drawn.X_test, drawn.y_test, True)):
        if table is not None and column is not None:
            given = table is run.X or table is run.X_test
            _hand_over(trainer, table, column, test, packed if given else None)
    return _Job(run, trainer, network if keep_network else None)


@dataclass
class _Job:
    """One run, its C++ state and, where networks are kept, its initial weights."""

    run: Run
    trainer: Any
    initial: TwoLayer | None

    def refill(self) -> None:
        """Draw the next stretch of fresh examples when an online run has used up the last."""
        run, trainer = self.run, self.trainer
        if run.source is None or not trainer.needs_rows:
            return
        batch = max(phase.batch_size or 0 for phase in run.schedule.phases)
        rows = max(1, _ONLINE_SIGNS // (run.inputs * batch)) * batch
        left = sum(phase.steps * (phase.batch_size or 0) for phase in run.schedule.phases) - trainer.position
        rows = min(rows, left)  # short runs would otherwise spend their time on examples that no step sees
        X, y = run.source.sample(rows, run.stream.child("online"), start=trainer.position)
        _hand_over(trainer, np.asarray(X), np.asarray(y), False)

    def result(self) -> Result:
        """What the run ended with; a diverged run gives back its initial network."""
        trainer, network = self.trainer, self.initial
        history, stopped = History.of(trainer.records), cast("Stopped", trainer.stopped)
        error: DivergenceError | None = None
        if stopped == "diverged":
            error = divergence(trainer.diverged_step, trainer.diverged_rate)
        elif not (np.isfinite(history.hidden_norm[-1]) and np.isfinite(history.output_norm[-1])):
            # The last update of all left the finite numbers, and no later score could show it.
            rates = self.run.schedule.phases[-1].tables()[0]
            stopped, error = "diverged", divergence(trainer.step, float(rates[-1].max()))
        elif network is not None:
            hidden = np.empty((network.width, network.inputs), dtype=np.float32)
            bias, output = np.empty(network.width, dtype=np.float32), np.empty(network.width, dtype=np.float32)
            trainer.export(hidden, bias, output)
            network = network.with_parameters(hidden=hidden, bias=bias, output=output, offset=trainer.offset)
        return Result(network, history, Counters(*trainer.counters), stopped, CpuEngine.name, error)


def _hand_over(trainer: Any, X: AnyArray, y: AnyArray, test: bool, packed: dict[int, AnyArray] | None = None) -> None:
    """Give a table to the trainer, ±1 as bits; `packed` remembers the bits of tables that outlive the call."""
    labels = np.ascontiguousarray(y, dtype=np.float32)
    bits = None if packed is None else packed.get(id(X))
    if bits is None and X.dtype == np.int8:
        with suppress(InvalidArgument):  # whole numbers that are no signs
            bits = pack(X)
        if packed is not None and bits is not None:
            packed[id(X)] = bits
    if bits is not None:
        trainer.set_bits(bits, labels, test)
    else:
        trainer.set_rows(np.ascontiguousarray(X, dtype=np.float32), labels, test)
