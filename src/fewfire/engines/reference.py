"""The reference engine: minibatch SGD and gradient descent in NumPy, one run after the other.

The oracle the fast engines are tested against. It is not fast: it computes every neuron on every example.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fewfire._threads import ONE_BLAS_THREAD
from fewfire.engines._base import OwnEngine, Trained
from fewfire.engines._gradients import LOSSES, Gradients, error_rate, unchecked_gradients
from fewfire.engines._result import MEASURED_ROWS, History, Result, Stopped, dense_counters, divergence
from fewfire.networks import TwoLayer, relevance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire._errors import DivergenceError
    from fewfire._types import AnyArray, Float64Array
    from fewfire.engines._run import Run


class ReferenceEngine(OwnEngine):
    """NumPy, written to be read; runs anywhere.

    Its matrix products are kept on one thread, because their rounding may depend on it.

    Examples
    --------
    >>> import fewfire as ff
    >>> from fewfire.engines import Phase, Run, Schedule
    >>> X, y = ff.problems.Parity(6, 2).sample(64, seed=0)
    >>> run = Run(ff.networks.init.sparse(2)(6, width=20, seed=0), Schedule(Phase(50)), X, y)
    >>> ff.engines.ReferenceEngine().train([run])[0].counters.examples
    1600
    """

    name: ClassVar = "reference"
    # About two seconds of one core, so that little is in flight when a sweep is stopped and scheduling costs nothing.
    batch_cost: ClassVar = 4e9
    batch_runs: ClassVar = 16

    def _check(self, run: Run) -> None:
        self._check_plain(run)

    def _train(self, runs: Sequence[Run], keep_networks: bool, notify: Callable[[int], object]) -> Trained:
        before = 0
        with ONE_BLAS_THREAD:
            for index, run in enumerate(runs):
                result = _Training(run.drawn(self)).carry_out(notify, before)
                yield index, result if keep_networks else replace(result, kept=None)
                before += run.schedule.steps
                notify(before)  # all steps, where it stopped early


class _Training:
    """The state of one run in progress."""

    def __init__(self, run: Run) -> None:
        self.run = run
        assert isinstance(run.network, TwoLayer)  # the run is drawn
        self.network = self.initial = run.network
        self.position = 0  # examples drawn so far: where the next minibatch starts in its stream
        self.steps = self.active_pairs = 0
        self.records: list[tuple[float, ...]] = []

    def carry_out(self, notify: Callable[[int], object], before: int) -> Result:
        checkpoints, step = set(self.run.schedule.checkpoints()), 0
        with np.errstate(over="ignore", invalid="ignore"):  # reported as a divergence instead
            self._record(0)
            if self._good_enough():
                return self._result("test_error")
            for phase in self.run.schedule.phases:
                rates, keeps, truncations = (np.broadcast_to(table, (phase.steps, 4)) for table in phase.tables())
                for i in range(phase.steps):
                    step += 1
                    X, y = self.run.batch(phase.batch_size, self.position)
                    self.position += phase.batch_size or 0
                    y = y.astype(self.network.dtype, copy=False)
                    gradient = unchecked_gradients(self.network, X, y, self.run.schedule.loss)
                    updated = _updated(self.network, gradient, rates[i], keeps[i], truncations[i])
                    if not np.isfinite(gradient.outputs).all() or updated is None:
                        return self._result("diverged", divergence(step, float(rates[i].max())))
                    self.network = updated
                    self.steps, self.active_pairs = step, self.active_pairs + gradient.active_pairs
                    if step in checkpoints:
                        self._record(step)
                        notify(before + step)
                        if self._good_enough():
                            return self._result("test_error")
        return self._result("steps")

    def _record(self, step: int) -> None:
        run, network = self.run, self.network
        loss = error = test_error = active = np.nan
        labels = [y for y in (run.y, run.y_test) if y is not None]
        if run.X is not None and run.y is not None:
            X, y = run.X[:MEASURED_ROWS], run.y[:MEASURED_ROWS]
            outputs = network(X)
            loss = float(np.mean(LOSSES[run.schedule.loss].value(outputs, y)))
            error = error_rate(outputs, y, *labels)
            active = network.activity(X).fraction
        if run.X_test is not None and run.y_test is not None:
            test_error = error_rate(network(run.X_test), *labels[::-1])
        norms = float(np.linalg.norm(network.hidden)), float(np.linalg.norm(network.output))
        mass = relevance(network).mass
        known = run.support is not None and mass.sum() > 0
        share = float(mass[list(run.support or ())].sum() / mass.sum()) if known else np.nan
        self.records.append((step, loss, error, test_error, *norms, active, share))

    def _good_enough(self) -> bool:
        limit = self.run.schedule.stop_error
        return limit is not None and self.records[-1][3] <= limit

    def _result(self, stopped: Stopped, error: DivergenceError | None = None) -> Result:
        network = self.network if error is None else self.initial
        counters = dense_counters(self.run, self.steps, self.active_pairs)
        return Result(network, History.of(self.records), counters, stopped, ReferenceEngine.name, error)


def _updated(
    network: TwoLayer, gradient: Gradients, rate: Float64Array, keep: Float64Array, truncation: Float64Array
) -> TwoLayer | None:
    """The network after one step; None when it is not finite."""
    parts: list[AnyArray] = [network.hidden, network.bias, network.output, np.array(network.offset)]
    slopes: list[AnyArray] = [gradient.hidden, gradient.bias, gradient.output, np.array(gradient.offset)]
    new = []
    for layer, (part, slope) in enumerate(zip(parts, slopes, strict=True)):
        kept = np.where(np.abs(slope) > truncation[layer], slope, 0) if truncation[layer] > 0 else slope
        scale, shrink = part.dtype.type(rate[layer]), part.dtype.type(keep[layer])
        value = shrink * part - scale * kept
        if not np.isfinite(value).all():
            return None
        new.append(value)
    return network.with_parameters(hidden=new[0], bias=new[1], output=new[2], offset=float(new[3]))
