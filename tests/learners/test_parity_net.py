"""ParityNetClassifier: SGD learns a small instance, the estimator reads off its support, and refuses what it must."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewfire.learners import ParityNetClassifier
from fewfire.learners._parity_net import find_support, lucky_neurons
from fewfire.networks import TwoLayer, construct, init
from fewfire.problems import Parity


def fitted(problem, samples, **options):
    X, y = problem.sample(samples, seed=0)
    return ParityNetClassifier(random_state=0, **options).fit(X, y)


def error(model, problem):
    X, y = problem.sample(5000, seed=1)
    return 1 - model.score(X, y)


def test_sgd_learns_and_names_the_support():
    problem = Parity(20, 3, support=[3, 8, 17])
    model = fitted(problem, 1000, width=300, max_steps=10_000)
    assert error(model, problem) <= 0.01
    assert model.support_ == (3, 8, 17)  # found by the gap: k was not given
    assert model.n_iter_ == 10_000 and model.history_.step[-1] == 10_000
    large = np.flatnonzero(model.initial_network_.hidden[model.lucky_neurons_].any(axis=0))
    assert len(model.lucky_neurons_) and set(large) <= {3, 8, 17}


def test_sgd_stops_on_the_held_out_part():
    model = fitted(Parity(12, 2), 600, width=100, validation_fraction=0.25, max_steps=50_000)
    assert model.n_iter_ < 50_000 and model.history_.test_error[-1] == 0


def test_columns_of_other_values_and_classes_of_any_name():
    X, y = Parity(10, 2).sample(400, seed=0)
    plain = ParityNetClassifier(width=50, max_steps=500, random_state=1).fit(X, y)
    table, names = (X < 0).astype(int) * 7, np.where(y > 0, "yes", "no")
    named = ParityNetClassifier(width=50, max_steps=500, random_state=1).fit(table, names)
    assert named.classes_.tolist() == ["no", "yes"] and named.mapping_[0] == (0, 7)
    assert np.array_equal(named.predict(table) == "yes", plain.predict(X) > 0)
    assert np.array_equal(named.decision_function(table), plain.decision_function(X))


@pytest.mark.usefixtures("core")
def test_engines_agree_on_the_result():
    X, y = Parity(10, 2).sample(400, seed=0)
    models = [
        ParityNetClassifier(width=50, max_steps=100, engine=name, random_state=1).fit(X, y)
        for name in ("cpu", "reference")
    ]
    assert [model.engine_ for model in models] == ["cpu", "reference"]
    assert np.allclose(models[0].network_.hidden, models[1].network_.hidden, atol=1e-5)


def test_pickle_and_clone():
    X, y = Parity(8, 2).sample(200, seed=0)
    model = ParityNetClassifier(width=20, max_steps=200, random_state=0).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert not hasattr(clone(model), "network_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": "theorem"}, "learning_rate must be a finite number in [0, inf); got 'theorem'."),
        ({"init": "he"}, "init must be one of 'sparse', 'dense'; got 'he'."),
        ({"width": 0}, "width must be an integer of at least 1; got 0."),
        ({"validation_fraction": 1.0}, "validation_fraction must be a finite number in [0, 1); got 1.0."),
    ],
)  # fmt: skip
def test_refusals(options, message):
    X, y = Parity(12, 2).sample(50, seed=0)
    model = ParityNetClassifier(**options)
    with pytest.raises(ValueError) as caught:
        model.fit(X, y)
    assert str(caught.value) == message
    assert not hasattr(model, "network_")


def test_support_by_gap_and_lucky_neurons():
    net = construct.junta(10, [2, 5], [1, -1, -1, 1])
    assert find_support(net, None) == (2, 5) and find_support(net, 1) == (2,)
    start = TwoLayer(np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1.0]]), np.zeros(3), np.ones(3))
    assert lucky_neurons(start, (0, 1)).tolist() == [0]
    assert lucky_neurons(start, (0, 1, 2)).tolist() == [0, 1]
    assert lucky_neurons(start, (0,)).tolist() == [0, 1]
    assert lucky_neurons(init.dense()(6, 5, seed=0), (0, 1)).tolist() == []


def test_explain_names_columns_and_luck():
    pandas = pytest.importorskip("pandas")
    X, y = Parity(12, 2, support=[3, 8]).sample(600, seed=0)
    table = pandas.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    model = ParityNetClassifier(width=100, max_steps=3000, k=2, random_state=0).fit(table, y)
    first, second, third = str(model.explain()).split("\n")
    assert first == f"100 neurons, 3000 steps by {model.engine_}"
    assert second.startswith("2 of 12 columns hold 9") and second.endswith("% of the weight: c3, c8")
    assert third == f"{len(model.lucky_neurons_)} neurons were lucky from the start"
    constant = ParityNetClassifier(width=4, max_steps=5, random_state=0).fit(np.ones((4, 2)), [1, 2, 1, 2])
    assert "0 of 2 columns hold no weight: none varies" in str(constant.explain())


# Continuous test data has to be cut in two for an estimator of Boolean functions; `binarize` does that on request only.
@pytest.mark.no_cover
@parametrize_with_checks([ParityNetClassifier(width=30, max_steps=300, binarize="median", random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
