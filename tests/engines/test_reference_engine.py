"""The reference engine: conformance, and the refusals of Run, Phase and Schedule."""

from itertools import product

import numpy as np
import pytest

from fewfire._errors import EngineUnavailable
from fewfire._random import Stream
from fewfire.engines import (
    CpuEngine,
    Engine,
    PerLayer,
    Phase,
    ReferenceEngine,
    Run,
    Sample,
    Schedule,
    Start,
    get_engine,
    register_engine,
    unregister_engine,
)
from fewfire.networks import init
from fewfire.problems import Junta, Parity
from fewfire.testing import EngineConformance
from fewfire.testing._engines import PROBLEM, data, small_run


class TestReferenceEngine(EngineConformance):
    def engine(self):
        return ReferenceEngine()

    def test_multiply_adds_are_dense(self):
        result = self.train(small_run(Schedule(Phase(10, batch_size=4)), width=17))[0]
        assert result.counters.multiply_adds == 2 * 10 * 4 * 17 * (9 + 1)
        assert 0 < result.counters.active_pairs < 10 * 4 * 17


def test_choosing_an_engine():
    assert isinstance(get_engine("reference"), Engine)
    assert get_engine("auto").unusable() is None
    with pytest.raises(ValueError, match="engine must be one of 'auto', .*'reference', 'jax', .*; got 'gpu'"):
        get_engine("gpu")

    class Broken(ReferenceEngine):
        name = "broken"

        def unusable(self):
            return "it needs a part. Remedy: install the part."

    register_engine("broken", lambda threads: Broken())
    try:
        with pytest.raises(
            EngineUnavailable, match="engine 'broken' cannot run here: it needs a part. Remedy: install"
        ):
            get_engine("broken")
        with pytest.raises(
            ValueError,
            match="name must be a name other than 'auto', .*'broken'; got 'broken'. Remedy: choose a new one",
        ):
            register_engine("broken", lambda threads: Broken())
    finally:
        unregister_engine("broken")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Phase(0), "steps must be an integer of at least 1; got 0."),
        (lambda: Phase(1, batch_size=0),
         "batch_size must be an integer of at least 1; got 0. Remedy: use None for full-batch gradient descent."),
        (lambda: Phase(1, weight_decay=-0.1), "weight_decay must not be negative; got -0.1."),
        (lambda: Phase(1, learning_rate=float("nan")),
         "learning_rate.hidden must be a finite number in (-inf, inf); got nan."),
        (lambda: Phase(3, learning_rate=[1.0, 2.0]),
         "learning_rate.hidden must hold one number for each of the 3 steps; got a length of 2."),
        (lambda: Phase(1, decay="l2"), "decay must be one of 'coupled', 'direct'; got 'l2'."),
        (lambda: Schedule(()), "phases must be one or more Phase objects; got (). Remedy: pass Phase(steps=1000)."),
        (lambda: Schedule(Phase(1), loss="mse"),
         "loss must be one of 'hinge', 'logistic', 'square', 'absolute', 'cross_entropy'; got 'mse'."),
        (lambda: Schedule(Phase(1), evaluate=0),
         'evaluate must be an integer of at least 1; got 0. Remedy: give a number of steps or "log".'),
        (lambda: Schedule(Phase(1), sampling="shuffle"),
         "sampling must be one of 'replacement', 'epochs'; got 'shuffle'."),
        (lambda: small_run(Schedule(Phase(1)), source=PROBLEM),
         "X, sample or source must be given, exactly one of them; got a Run with X and source. Remedy: leave out all but one."),
        (lambda: small_run(Schedule(Phase(1)), y=None),
         "y goes with X, and y_test with X_test; got a Run with one of a pair. Remedy: pass both or neither."),
        (lambda: small_run(Schedule(Phase(1, batch_size=None)), X=None, y=None, source=PROBLEM),
         "batch_size must be a number when examples come from a source; got None. Remedy: choose one, e.g. 32."),
        (lambda: small_run(Schedule(Phase(1)), support=[9]),
         "support[0] must be an integer of at least 0 and at most 8; got 9."),
        (lambda: small_run(Schedule(Phase(1), stop_error=0.1)),
         "stop_error needs held-out data; got 0.1. Remedy: pass X_test and y_test, or test=Sample(…)."),
        (lambda: small_run(Schedule(Phase(1)), y=np.arange(40)),
         "y must be ±1 for the hinge loss; got 0.0. Remedy: recode the two classes."),
        (lambda: small_run(Schedule(Phase(1)), X=np.ones((40, 3))),
         "X must be a table of shape (rows, 9); got shape (40, 3). Remedy: reshape it."),
        (lambda: small_run(Schedule(Phase(1)), X=np.ones((0, 9)), y=[]),
         "X must not be empty; got shape (0, 9). Remedy: pass at least one row and one column."),
        (lambda: ReferenceEngine().train([], on_divergence="ignore"),
         "on_divergence must be one of 'raise', 'record'; got 'ignore'."),
    ],
)  # fmt: skip
def test_refusals(make, message):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == message


def test_checkpoints_on_the_log_grid():
    grid = Schedule((Phase(900), Phase(100))).checkpoints()
    assert grid[:4] == [0, 1, 2, 3] and grid[-1] == 1000 and 100 in grid and 20 <= len(grid) <= 30


def test_square_loss_takes_real_labels():
    X, _ = data()
    y = X[:, 0] * 0.5 + 0.25
    task = Run(init.dense()(9, 50, seed=0), Schedule(Phase(2000, 0.05), loss="square"), X, y)
    history = ReferenceEngine().train([task])[0].history
    assert history.train_error[-1] < 0.01 * history.train_error[0]
    assert np.isnan(history.test_error).all()


def test_per_layer_defaults_freeze_the_rest():
    task = small_run(Schedule(Phase(5, PerLayer(output=0.1))))
    network = ReferenceEngine().train([task])[0].network
    assert np.array_equal(network.hidden, task.network.hidden)
    assert not np.array_equal(network.output, task.network.output)


P = Parity(9, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Start("dense", 9, 4), "init must be an initialiser; got 'dense'. Remedy: write init.sparse(2), for example."),
        (lambda: Start(init.dense(), 9, 0), "width must be an integer of at least 1; got 0."),
        (lambda: Start(init.dense(), 9, 4, "a"), "seed must be an integer in [0, 2**64); got 'a'. Remedy: pass a non-negative integer."),
        (lambda: Sample(P, 0), "rows must be an integer of at least 1; got 0."),
        (lambda: Sample(P, 5, -1), "seed must be an integer in [0, 2**64); got -1. Remedy: pass a non-negative integer."),
        (lambda: Run("dense", Schedule(Phase(1)), sample=Sample(P, 5)), "network must be a TwoLayer, an Mlp or a Start; got 'dense'."),
        (lambda: Run(Start(init.dense(), 9, 4), Schedule(Phase(1)), sample=(1, 2)),
         "sample must be a Sample; got (1, 2). Remedy: pass sample=Sample(problem, rows, seed)."),
        (lambda: Run(Start(init.dense(), 9, 4), Schedule(Phase(1)), sample=Sample(Parity(12, 2), 5)),
         "sample must have as many inputs as the network, 9; got 12. Remedy: give the start as many inputs as the problem has."),
        (lambda: Run(Start(init.dense(), 9, 4), Schedule(Phase(1)), source=Parity(5, 2)),
         "source must have as many inputs as the network, 9; got 5. Remedy: give the start as many inputs as the problem has."),
        (lambda: Run(Start(init.dense(), 9, 4), Schedule(Phase(1))),
         "X, sample or source must be given, exactly one of them; got a Run with none. Remedy: pass one."),
    ],
)  # fmt: skip
def test_refusals_of_described_runs(make, message):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == message


def test_one_number_for_both_sets_gives_two_sets():
    task = Run(Start(init.dense(), 9, 4), Schedule(Phase(1)), sample=Sample(P, 40, 3), test=Sample(P, 40, 3)).drawn()
    assert not np.array_equal(task.X, task.X_test)
    assert np.array_equal(task.X, P.sample(40, 3)[0])
    assert np.array_equal(task.X_test, P.sample(40, Stream(3, "test"))[0])


def test_engines_get_what_they_cannot_draw():
    class Drawing(ReferenceEngine):
        draws_problems, draws_starts = frozenset({"parity"}), frozenset({"sparse"})

    dense, sparse = (Start(start, 9, 4) for start in (init.dense(), init.sparse(2)))
    parity, other = Sample(P, 5, 1), Sample(Junta(9, (1,), (1, -1)), 5, 1)
    for start, sample in product((dense, sparse), (parity, other)):
        run = Run(start, Schedule(Phase(1)), sample=sample, test=parity, seed=1).drawn(Drawing())
        assert isinstance(run.network, Start) == (start is sparse)
        assert (run.sample is not None) == (run.X is None) == (sample is parity) and run.test is not None


def test_another_engine_can_come_first():
    class First(ReferenceEngine):
        name = "first"

    register_engine("first", lambda threads: First(), before="cpu")
    try:
        assert get_engine().name == "first"
    finally:
        unregister_engine("first")
    with pytest.raises(ValueError, match="name must be that of something registered from outside; got 'cpu'"):
        unregister_engine("cpu")


def test_the_cpu_engine_names_what_is_missing(without_core):
    with pytest.raises(
        EngineUnavailable, match=r"engine 'cpu' cannot run here: fewfire's C\+\+ part is not installed. Remedy"
    ):
        CpuEngine().train([small_run(Schedule(Phase(1)))])
