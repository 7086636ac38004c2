"""The reference engine: conformance, and the refusals of Run, Phase and Schedule."""

import numpy as np
import pytest

from fewfire._errors import EngineUnavailable
from fewfire.engines import (
    Engine,
    PerLayer,
    Phase,
    ReferenceEngine,
    Run,
    Schedule,
    engine_report,
    get_engine,
    register_engine,
    unregister_engine,
)
from fewfire.networks import init
from fewfire.testing import PROBLEM, EngineConformance, data, small_run


class TestReferenceEngine(EngineConformance):
    def engine(self):
        return ReferenceEngine()

    def test_multiply_adds_are_dense(self):
        result = self.train(small_run(Schedule(Phase(10, batch_size=4)), width=17))[0]
        assert result.counters.multiply_adds == 2 * 10 * 4 * 17 * (9 + 1)
        assert 0 < result.counters.active_pairs < 10 * 4 * 17


def test_choosing_an_engine():
    assert isinstance(get_engine("reference"), Engine)
    assert get_engine("auto").name in engine_report()
    assert engine_report()["reference"] is None
    with pytest.raises(ValueError, match="engine must be one of 'auto', .*'reference'; got 'gpu'"):
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
        with pytest.raises(ValueError, match="name must be new; got 'broken'. Remedy: there are auto, .*broken"):
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
         "loss must be one of 'hinge', 'logistic', 'square', 'absolute'; got 'mse'."),
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
         "stop_error needs held-out data; got 0.1. Remedy: pass X_test and y_test."),
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
