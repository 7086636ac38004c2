"""Plans: what is done, what is to do, and an estimate that follows the work."""

import numpy as np
import pytest

from fewfire.sweeps import MemoryStore, RunSpec, Sweep, estimate_time, make_plan
from fewfire.sweeps.run import _estimate
from fewfire.sweeps.run._plan import cost
from fewfire.testing._sweeps import made_up_row, tiny


def test_without_a_store_everything_is_to_do():
    sweep = tiny()
    plan = make_plan(sweep)
    assert (plan.total, plan.finished, plan.pending.tolist()) == (16, 0, list(range(16)))
    assert plan.costs.tolist() == [cost(spec) for spec in sweep.runs()] and plan.cost == plan.costs.sum()


def test_a_plan_counts_what_the_store_has():
    sweep, store = (
        tiny(network={"start": "dense", "width": 5}, data={"samples": 30, "test_samples": 40}, trials=6),
        MemoryStore(),
    )
    store.add(
        [made_up_row(0, error=0.1), made_up_row(1, error=0.4), made_up_row(2, "diverged"), made_up_row(3, "failed")]
    )
    store.add([made_up_row(0, width=99)])  # of another sweep
    plan = make_plan(sweep, store)
    assert (plan.total, plan.finished, plan.successes, plan.diverged) == (6, 3, 1, 1)
    assert [sweep.run_at(int(number)).trial for number in plan.pending] == [3, 4, 5]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_estimate_adds_up_what_the_probes_took(engine, monkeypatch):
    """With a clock that ticks once a look: each probe takes one tick to make and one to train."""
    ticks = iter(range(1000))
    monkeypatch.setattr(_estimate.time, "perf_counter", lambda: float(next(ticks)))
    sweep = tiny(data={"samples": [30, 3000]}, trials=1)  # 8 runs, each shorter than a probe
    plan = make_plan(sweep)
    seconds = estimate_time(sweep, plan, engine, workers=2).seconds
    probes = np.unique(plan.costs)
    assert probes.size == 4
    paces = np.interp(np.log(plan.costs), np.log(probes), 1 / probes)
    assert seconds == pytest.approx(((paces * plan.costs) + 1).sum() / 2)


def test_long_runs_are_probed_for_a_moment(monkeypatch):
    seen, real = [], RunSpec.describe
    monkeypatch.setattr(RunSpec, "describe", lambda spec: seen.append(spec) or real(spec))
    sweep = tiny(training={"steps": 1_000_000, "stop_error": 0.0, "evaluate": 1000}, trials=1)
    assert estimate_time(sweep, make_plan(sweep)).seconds > 0
    probes = seen[1:]
    assert len(probes) == 4 and all(spec.schedule.stop_error is None for spec in probes)
    assert all(cost(spec) < 1.1 * _estimate.PROBE_COST for spec in probes)


def test_nothing_to_do_takes_no_time():
    sweep, store = tiny(), MemoryStore()
    sweep.run(store)
    assert estimate_time(sweep, make_plan(sweep, store)).seconds == 0.0


def test_a_large_plan_matches_a_small_store():
    base = tiny(trials=500)
    store = MemoryStore()
    Sweep(base.problems, base.networks, base.data, base.schedules, 1).run(store)
    plan = make_plan(base, store)
    assert (plan.total, plan.finished) == (4000, 8) and plan.pending.tolist() == list(range(8, 4000))
