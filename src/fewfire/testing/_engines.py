"""What every engine must do; each test compares with a plain loop written here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewfire._dense.losses import LossName
from fewfire._errors import DivergenceError, FewfireError, InvalidArgument
from fewfire._random import Stream
from fewfire._types import AnyArray
from fewfire.engines import (
    MEASURED_ROWS,
    Engine,
    PerLayer,
    Phase,
    Result,
    Run,
    Sample,
    Schedule,
    Start,
    get_engine,
    gradients,
    register_engine,
    unregister_engine,
)
from fewfire.engines._gradients import error_rate
from fewfire.networks import Mlp, TwoLayer, init
from fewfire.networks.init._base import INITIALISERS, Initialiser
from fewfire.problems import Parity

PROBLEM = Parity(9, 2)


def data(rows: int = 40, name: str = "data") -> tuple[AnyArray, AnyArray]:
    """Examples of a small parity."""
    return PROBLEM.sample(rows, Stream(3, name))


def small_run(
    schedule: Schedule, width: int = 17, start: Initialiser | None = None, seed: int = 11, **fields: Any
) -> Any:
    """A run on 40 examples of a small parity, with other fields of `Run` instead of these.

    Its network and examples are drawn, which the type `Run` does not require.
    """
    X, y = data()
    network = (start or init.sparse(2))(PROBLEM.n, width, seed=7)
    return Run(**{"network": network, "schedule": schedule, "X": X, "y": y, "seed": seed, **fields})


def assert_same_network(first: TwoLayer, second: TwoLayer, tolerance: float = 1e-5) -> None:
    """Every weight agrees to this share of the largest of its layer, or of 1."""
    for name in ("hidden", "bias", "output", "offset"):
        a, b = np.asarray(getattr(first, name)), np.asarray(getattr(second, name))
        assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max()), name


def _stepped(
    net: TwoLayer, X: AnyArray, y: AnyArray, rate: float, kept: float = 1.0, loss: LossName = "hinge"
) -> TwoLayer:
    """The network after a step on these examples, with this share of the weights kept."""
    g = gradients(net, X, y, loss)
    parts = ("hidden", "bias", "output", "offset")
    return net.with_parameters(**{name: getattr(net, name) * kept - rate * getattr(g, name) for name in parts})


class _Watched:
    """A problem that counts how many runs have drawn from it."""

    inputs = PROBLEM.n

    def __init__(self) -> None:
        self.drawn = 0

    def sample(self, m: int, seed: int | Stream, start: int = 0) -> tuple[AnyArray, AnyArray]:
        self.drawn += 1
        return PROBLEM.sample(m, seed, start)


class EngineConformance:
    """Subclass it in a test module, with `engine()` giving the engine to test."""

    def engine(self) -> Engine:
        """The engine under test."""
        raise NotImplementedError

    def train(self, *runs: Run, **options: Any) -> list[Result]:
        """Results of these runs."""
        return self.engine().train(runs, **options)

    def test_says_what_it_can_do(self) -> None:
        engine = self.engine()
        assert isinstance(engine, Engine) and engine.unusable() is None
        assert engine.draws_starts <= set(INITIALISERS)
        assert engine.batch_runs >= 1 and engine.batch_cost > 0

    def test_is_found_by_name(self) -> None:
        register_engine("under_test", lambda threads: self.engine())
        try:
            assert get_engine("under_test").name == self.engine().name
        finally:
            unregister_engine("under_test")

    def test_described_runs_are_the_drawn_ones(self) -> None:
        """The same bits, drawn by the run or by the engine: start, examples and test set."""
        start, sample = Start(init.sparse(2), 9, 13, seed=5), Sample(PROBLEM, 50, seed=6)
        test = Sample(PROBLEM, 30, Stream(6, "test"))
        described = Run(start, Schedule(Phase(40)), sample=sample, test=test, seed=4, support=PROBLEM.support)
        first, second = self.train(described), self.train(described.drawn())
        assert first[0].network.equals(second[0].network) and first[0].counters == second[0].counters
        assert np.array_equal(first[0].history.test_error, second[0].history.test_error)
        by_hand = Run(
            init.sparse(2)(9, 13, seed=5),
            Schedule(Phase(40)),
            *PROBLEM.sample(50, seed=6),
            *PROBLEM.sample(30, Stream(6, "test")),
            seed=4,
        )
        assert self.train(by_hand)[0].network.equals(first[0].network)

    def test_nothing_is_drawn_before_its_turn(self) -> None:
        """With many runs waiting, most are still descriptions when the first has ended."""
        problem = _Watched()
        runs = [
            Run(Start(init.dense(), 9, 4, seed=i), Schedule(Phase(2)), sample=Sample(problem, 8, seed=i), seed=i)
            for i in range(1000)  # more than any engine keeps ready
        ]
        assert problem.drawn == 0
        seen: list[int] = []
        self.train(*runs, progress=lambda done, total: seen.append(problem.drawn))
        assert problem.drawn == 1000 and (self.engine().side_by_side or min(seen) < 1000)

    def test_networks_are_left_behind_when_they_are_not_kept(self) -> None:
        task = small_run(Schedule(Phase(3)))
        kept, left = self.train(task)[0], self.train(task, keep_networks=False)[0]
        assert np.array_equal(kept.history.train_loss, left.history.train_loss) and kept.counters == left.counters
        with pytest.raises(FewfireError, match=r"the network was not kept\. Remedy: train with keep_networks=True"):
            _ = left.network

    def test_constant_rates_and_listed_ones_are_the_same(self) -> None:
        constant = small_run(Schedule(Phase(6, 0.1, weight_decay=0.05)))
        listed = small_run(Schedule(Phase(6, [0.1] * 6, weight_decay=[0.05] * 6)))
        assert_same_network(self.train(constant)[0].network, self.train(listed)[0].network, 1e-6)

    @pytest.mark.parametrize("loss", ["hinge", "logistic", "square", "absolute"])
    def test_full_batch_descent_is_the_formula(self, loss: LossName) -> None:
        """θ ← (1 − η λ) θ − η ∇, all layers, three steps."""
        task = small_run(Schedule(Phase(3, 0.2, weight_decay=0.1, batch_size=None), loss=loss))
        net = task.network
        for _ in range(3):
            net = _stepped(net, task.X, task.y, 0.2, 1 - 0.02, loss)
        result = self.train(task)[0]
        assert_same_network(result.network, net)
        assert result.stopped == "steps" and result.counters.steps == 3 and result.counters.examples == 120

    def test_minibatches_follow_the_stream(self) -> None:
        """Step t sees examples ⌊word·m/2³²⌋ of words 32t …, whatever the engine."""
        task = small_run(Schedule(Phase(100, 0.1, weight_decay=0.01)))
        net, words = task.network, Stream(11, "batches").words(3200).astype(np.uint64)
        for t in range(100):
            chosen = (words[32 * t : 32 * t + 32] * np.uint64(40)) >> np.uint64(32)
            net = _stepped(net, task.X[chosen], task.y[chosen], 0.1, 0.999)
        assert_same_network(self.train(task)[0].network, net)

    def test_epochs_see_every_example_once(self) -> None:
        """With m = 40 and batches of 10, four steps of tiny rate equal one full-batch step on average."""
        rate = 1e-4
        small = small_run(Schedule(Phase(4, rate, batch_size=10), sampling="epochs", loss="square"))
        full = small_run(Schedule(Phase(1, 4 * rate, batch_size=None), loss="square"))
        first, second = self.train(small, full)
        moved = np.abs(second.network.hidden - full.network.hidden).max()
        # The difference is of second order in the rate: a missed or doubled example would be of first order.
        assert np.abs(first.network.hidden - second.network.hidden).max() < 0.01 * moved

    def test_online_runs_see_fresh_examples(self) -> None:
        task = small_run(Schedule(Phase(20, 0.1, batch_size=8)), X=None, y=None, source=PROBLEM)
        X, y = PROBLEM.sample(160, Stream(11, "batches/online"))
        net = task.network
        for t in range(20):
            net = _stepped(net, X[8 * t : 8 * t + 8], y[8 * t : 8 * t + 8], 0.1)
        assert_same_network(self.train(task)[0].network, net)

    def test_layers_and_steps_have_their_own_rates(self) -> None:
        rates = PerLayer(hidden=[0.5, 0.0], bias=0.0, output=[0.0, 0.25], offset=0.0)
        decay = PerLayer(hidden=1.0, bias=0.0, output=0.5, offset=0.0)
        task = small_run(Schedule(Phase(2, rates, decay, decay="direct", batch_size=None)))
        g = gradients(task.network, task.X, task.y)
        middle = task.network.with_parameters(hidden=-0.5 * g.hidden, output=task.network.output * 0.5)
        g = gradients(middle, task.X, task.y)
        expected = middle.with_parameters(hidden=middle.hidden * 0, output=middle.output * 0.5 - 0.25 * g.output)
        assert_same_network(self.train(task)[0].network, expected)

    def test_other_optimisers_are_trained_by_or_refused(self) -> None:
        task = small_run(Schedule(Phase(1, 0.5, batch_size=None), loss="logistic", optimiser="sign_sgd"))
        if not getattr(self.engine(), "general", False):
            with pytest.raises(InvalidArgument, match="optimiser must be plain 'sgd'"):
                self.train(task)
            return
        g, found = gradients(task.network, task.X, task.y, "logistic"), self.train(task)[0].network
        clear = np.abs(g.hidden) > 1e-6  # others may be 0 on one side only
        assert np.allclose(found.hidden[clear], (task.network.hidden - 0.5 * np.sign(g.hidden))[clear], atol=1e-6)

    def test_deeper_networks_are_trained_or_refused(self) -> None:
        task = small_run(Schedule(Phase(20)), network=Start(init.sparse(2), PROBLEM.n, (17, 5)).draw())
        if not getattr(self.engine(), "general", False):
            with pytest.raises(InvalidArgument, match=r"network must have one hidden layer and one output"):
                self.train(task)
            return
        found = self.train(task)[0].network
        assert isinstance(found, Mlp) and found.widths == (17, 5) and not found.equals(task.network)

    def test_phases_follow_each_other(self) -> None:
        both = small_run(Schedule((Phase(1, 0.3, batch_size=None), Phase(2, 0.1, batch_size=None))))
        first = self.train(small_run(Schedule(Phase(1, 0.3, batch_size=None))))[0].network
        X, y = data()
        second = self.train(Run(first, Schedule(Phase(2, 0.1, batch_size=None)), X, y))[0].network
        assert_same_network(self.train(both)[0].network, second)

    def test_small_gradients_are_truncated(self) -> None:
        task = small_run(Schedule(Phase(1, 1.0, truncation=PerLayer(hidden=0.02), batch_size=None)))
        g = gradients(task.network, task.X, task.y)
        kept = np.abs(g.hidden) > 0.02
        assert 0 < kept.sum() < kept.size
        change = task.network.hidden - self.train(task)[0].network.hidden
        assert np.array_equal(change != 0, kept)
        assert np.allclose(change[kept], g.hidden[kept], atol=1e-6)

    def test_history(self) -> None:
        X_test, y_test = data(64, "test")
        task = small_run(Schedule(Phase(25), evaluate=10), X_test=X_test, y_test=y_test, support=[1, 0])
        result = self.train(task)[0]
        history, net = result.history, result.network
        assert history.step.tolist() == [0, 10, 20, 25]
        assert history.test_error[0] == error_rate(task.network(X_test), y_test)
        assert history.test_error[-1] == result.test_error == error_rate(net(X_test), y_test)
        assert history.train_error[-1] == error_rate(net(task.X), task.y)
        margins = np.maximum(1 - net(task.X) * task.y, 0)
        assert history.train_loss[-1] == pytest.approx(margins.mean(), rel=1e-5)
        assert history.hidden_norm[-1] == pytest.approx(np.linalg.norm(net.hidden), rel=1e-5)
        assert history.output_norm[-1] == pytest.approx(np.linalg.norm(net.output), rel=1e-5)
        assert history.active_fraction[-1] == pytest.approx(net.activity(task.X).fraction)
        mass = np.abs(net.output) @ np.abs(net.hidden)
        assert history.support_weight[-1] == pytest.approx(mass[:2].sum() / mass.sum(), rel=1e-5)
        assert history.support_weight[0] < history.support_weight[-1] < 1

    def test_a_checkpoint_looks_at_the_first_rows_of_a_large_training_set(self) -> None:
        X, y = data(MEASURED_ROWS + 500)
        y[MEASURED_ROWS:] *= -1  # the labels of the rest would show
        history = self.train(small_run(Schedule(Phase(1)), X=X, y=y))[0].history
        network, X, y = small_run(Schedule(Phase(1))).network, X[:MEASURED_ROWS], y[:MEASURED_ROWS]
        assert isinstance(network, TwoLayer)
        assert history.train_error[0] == pytest.approx(error_rate(network(X), y), abs=2e-4)
        assert history.train_loss[0] == pytest.approx(np.maximum(1 - network(X) * y, 0).mean(), rel=1e-5)
        assert history.active_fraction[0] == pytest.approx(network.activity(X).fraction, rel=1e-5)

    def test_weight_on_an_unknown_support_is_not_recorded(self) -> None:
        assert np.isnan(self.train(small_run(Schedule(Phase(3))))[0].history.support_weight).all()

    def test_stops_early_on_held_out_error(self) -> None:
        X_test, y_test = data(200, "test")
        schedule = Schedule(Phase(5000, 0.1, weight_decay=0.01), evaluate=50, stop_error=0.0)
        task = small_run(schedule, width=100, X=data(400)[0], y=data(400)[1], X_test=X_test, y_test=y_test)
        result = self.train(task)[0]
        assert result.stopped == "test_error" and result.test_error == 0.0
        assert result.counters.steps == result.history.step[-1] < 5000
        assert (result.history.test_error[:-1] > 0).all()

    def test_divergence_names_step_and_rate(self) -> None:
        task = small_run(Schedule(Phase(500, 1e6, batch_size=None), loss="square"))
        with pytest.raises(
            DivergenceError, match=r"training diverged at step \d+: .*learning rate 1e\+06.*Remedy: lower learning_rate"
        ) as caught:
            self.train(task)
        assert 1 <= caught.value.step < 20 and caught.value.learning_rate == 1e6

    def test_divergence_of_one_run_can_be_recorded(self) -> None:
        bad, good = (small_run(Schedule(Phase(50, rate), loss="square")) for rate in (1e6, 0.01))
        first, second = self.train(bad, good, on_divergence="record")
        assert first.stopped == "diverged" and first.divergence is not None
        assert first.divergence.step == first.counters.steps + 1
        assert np.isfinite(first.network.hidden).all()
        assert second.stopped == "steps"

    def test_runs_do_not_disturb_each_other(self) -> None:
        tasks = [small_run(Schedule(Phase(30)), width=width, seed=seed) for width, seed in ((5, 1), (17, 2), (1, 3))]
        together, alone = self.train(*tasks), [self.train(task)[0] for task in reversed(tasks)]
        for first, second in zip(together, reversed(alone), strict=True):
            assert first.network.equals(second.network)
            assert first.counters == second.counters
        for task, width in zip(tasks, (5, 17, 1), strict=True):  # their starts are untouched
            assert np.array_equal(task.network.hidden, small_run(Schedule(Phase(1)), width=width).network.hidden)

    def test_progress_ends_at_the_total(self) -> None:
        seen = []
        tasks = [small_run(Schedule(Phase(20), evaluate=5)) for _ in range(2)]
        self.train(*tasks, progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (40, 40) and seen == sorted(seen)

    def test_relu6_and_symmetric_start(self) -> None:
        task = small_run(Schedule(Phase(3, 0.05, batch_size=None)), width=20, start=init.symmetric(3))
        size = np.abs(task.network.output).sum()  # the pairs cancel up to the rounding of the sum
        assert np.abs(task.network(task.X)).max() <= 1e-6 * size
        result = self.train(task)[0]
        one = self.train(small_run(Schedule(Phase(1, 0.05, batch_size=None)), width=20, start=init.symmetric(3)))[0]
        assert_same_network(one.network, _stepped(task.network, task.X, task.y, 0.05))
        assert np.abs(result.network(task.X)).max() > 1e-3 * size
