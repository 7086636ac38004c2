"""An engine from outside the package: plain gradient steps, one run after the other, networks rebuilt every step."""

from typing import ClassVar

import numpy as np

from fewfire import InvalidArgument
from fewfire.engines import MEASURED_ROWS, Counters, History, Result, divergence, gradients
from fewfire.networks import relevance


class ToyEngine:
    name: ClassVar = "toy"
    draws_problems: ClassVar = frozenset()
    draws_starts: ClassVar = frozenset()
    batch_cost: ClassVar = 1e9
    batch_runs: ClassVar = 8
    side_by_side: ClassVar = False

    def unusable(self):
        return None

    def train(self, runs, *, keep_networks=True, on_divergence="raise", progress=None):
        results, total, before = [], sum(run.schedule.steps for run in runs), 0
        for run in runs:
            if len(run.widths) > 1 or run.outputs > 1:
                raise InvalidArgument("network must have one hidden layer and one output for the toy engine.")
            if not run.schedule.plain:
                raise InvalidArgument("optimiser must be plain 'sgd' for the toy engine; it has no other.")
            result = _train(run.drawn(), keep_networks)
            if result.divergence is not None and on_divergence == "raise":
                raise result.divergence
            results.append(result)
            before += run.schedule.steps
            if progress is not None:
                progress(before, total)
        return results


def make_toy_engine(threads):
    """What `register_engine` takes: a function that other processes can import."""
    return ToyEngine()


def _train(run, keep):
    net, start, step, seen, fired, drawn = run.network, run.network, 0, 0, 0, 0
    records, checkpoints, error, stopped = [_record(run, net, 0)], set(run.schedule.checkpoints()), None, "steps"
    limit = run.schedule.stop_error
    with np.errstate(all="ignore"):
        for phase in run.schedule.phases:
            rates, keeps, cuts = (np.broadcast_to(table, (phase.steps, 4)) for table in phase.tables())
            for i in range(phase.steps):
                if (limit is not None and records[-1][3] <= limit) or error is not None:
                    break
                X, y = run.batch(phase.batch_size, drawn)
                drawn += phase.batch_size or 0
                g = gradients(net, X, y, run.schedule.loss)
                parts = []
                for layer, name in enumerate(("hidden", "bias", "output", "offset")):
                    slope = np.asarray(getattr(g, name))
                    slope = np.where(np.abs(slope) > cuts[i, layer], slope, 0) if cuts[i, layer] > 0 else slope
                    parts.append(np.float32(keeps[i, layer]) * getattr(net, name) - np.float32(rates[i, layer]) * slope)
                if not all(np.isfinite(part).all() for part in parts) or not np.isfinite(g.outputs).all():
                    error, stopped = divergence(step + 1, float(rates[i].max())), "diverged"
                    break
                net = net.with_parameters(*parts[:3], float(parts[3]))
                step, seen, fired = step + 1, seen + len(X), fired + g.active_pairs
                if step in checkpoints:
                    records.append(_record(run, net, step))
    if error is None and limit is not None and records[-1][3] <= limit:
        stopped = "test_error"
    work = Counters(step, seen, fired, 2 * seen * net.width * (net.inputs + 1))
    kept = (net if error is None else start) if keep else None
    return Result(kept, History.of(records), work, stopped, ToyEngine.name, error)


def _error(out, y):
    return float(np.mean(out * y <= 0) if (np.abs(y) == 1).all() else np.mean((out - y) ** 2))


def _record(run, net, step):
    loss = error = test = active = support = np.nan
    if run.X is not None:
        X, y = run.X[:MEASURED_ROWS], run.y[:MEASURED_ROWS]
        loss, error = gradients(net, X, y, run.schedule.loss).loss, _error(net(X), y)
        active = net.activity(X).fraction
    if run.X_test is not None:
        test = _error(net(run.X_test), run.y_test)
    if run.support is not None:
        mass = relevance(net).mass
        support = mass[list(run.support)].sum() / mass.sum()
    return step, loss, error, test, np.linalg.norm(net.hidden), np.linalg.norm(net.output), active, support
