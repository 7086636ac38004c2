"""ParityNetClassifier: every schedule learns a small instance, reads off its support, and refuses what it must."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewfire.learners.parity_net import ParityNetClassifier, lottery_tickets
from fewfire.learners.parity_net._estimator import find_support, lucky_neurons
from fewfire.learners.parity_net._lottery import _largest
from fewfire.networks import TwoLayer, construct, init
from fewfire.problems import CorrelatedParity, Parity


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
    assert model.support_ == (3, 8, 17)  # found by the gap: k was not told
    assert model.n_iter_ == 10_000 and model.history_.step[-1] == 10_000
    large = np.flatnonzero(model.initial_network_.hidden[model.lucky_neurons_].any(axis=0))
    assert len(model.lucky_neurons_) and set(large) <= {3, 8, 17}


def test_sgd_stops_on_the_held_out_part():
    model = fitted(Parity(12, 2), 600, width=100, validation_fraction=0.25, max_steps=50_000)
    assert model.n_iter_ < 50_000 and model.history_.test_error[-1] == 0


@pytest.mark.parametrize(
    ("problem", "samples", "options"),
    [
        (Parity(20, 2, support=[4, 9]), 10_000, {"schedule": "over_sparse", "k": 2, "sparsity": 9, "width": 400}),
        (Parity(21, 4), 10_000, {"schedule": "under_sparse", "k": 4, "sparsity": 2, "width": 1000}),
        (CorrelatedParity(101, 3), 20_000, {"schedule": "correlated", "k": 3, "width": 200}),
    ],
)
def test_the_theorems_schedules_learn(problem, samples, options):
    model = fitted(problem, samples, **options)
    assert error(model, problem) <= 0.01
    assert model.support_ == problem.support
    assert model.n_iter_ == 1  # one step on the first layer, then a convex problem


def test_over_sparse_good_neurons_are_the_scaled_sum():
    """Theorem 4: a neuron that contains the support becomes ±Σ_{j∈S} x_j/(2k); a bad one holds at most one bit."""
    problem, k = Parity(20, 2), 2
    model = fitted(problem, 40_000, schedule="over_sparse", k=k, sparsity=9, width=400)
    start, end = model.initial_network_.hidden, model.network_.hidden
    good = (start[:, :k] == 1).all(axis=1)
    assert good.any() and set(np.flatnonzero(good)) == set(model.lucky_neurons_)
    assert np.allclose(np.abs(end[good, :k]), 1 / (2 * k), rtol=0.1)
    assert not end[good, k:].any()
    assert (np.count_nonzero(end[~good], axis=1) <= 1).all()


def test_descent_on_the_second_layer_as_the_theorem_states():
    problem = Parity(20, 2)
    options = {"schedule": "over_sparse", "k": 2, "sparsity": 9, "width": 400, "second_layer": "descent"}
    assert error(fitted(problem, 10_000, max_steps=3000, **options), problem) <= 0.05


def test_correlated_descent_runs_both_layers():
    options = {"schedule": "correlated", "k": 3, "width": 40, "second_layer": "descent", "max_steps": 50}
    with pytest.warns(ConvergenceWarning):  # 50 steps are too few
        model = fitted(CorrelatedParity(51, 3), 2000, **options)
    assert model.n_iter_ == 51


def test_columns_of_other_values_and_classes_of_any_name():
    X, y = Parity(10, 2).sample(400, seed=0)
    plain = ParityNetClassifier(width=50, max_steps=500, random_state=1).fit(X, y)
    table, names = (X < 0).astype(int) * 7, np.where(y > 0, "yes", "no")
    named = ParityNetClassifier(width=50, max_steps=500, random_state=1).fit(table, names)
    assert named.classes_.tolist() == ["no", "yes"] and named.mapping_[0] == (0, 7)
    assert np.array_equal(named.predict(table) == "yes", plain.predict(X) > 0)
    assert np.array_equal(named.decision_function(table), plain.decision_function(X))


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
        ({"schedule": "adam"}, "schedule must be one of 'sgd', 'over_sparse', 'under_sparse', 'correlated'; got 'adam'."),
        ({"schedule": "over_sparse", "sparsity": 9},
         'k must be given for schedule="over_sparse"; got None. Remedy: pass the number of bits of the parity.'),
        ({"schedule": "over_sparse", "k": 3, "sparsity": 9},
         'k must be even (pareto, Theorem 4); got 3. Remedy: use schedule="sgd" for odd parities.'),
        ({"schedule": "over_sparse", "k": 2},
         "sparsity must be odd, above 4k = 8 and below the 12 inputs (pareto, Lemma 8); got 2. Remedy: use 9, or pass strict=False."),
        ({"schedule": "under_sparse", "k": 4, "sparsity": 3},
         "sparsity must be even, above 0 and below k = 4 (pareto, Theorem 21); got 3. Remedy: use 2, or pass strict=False."),
        ({"schedule": "under_sparse", "k": 2, "sparsity": 2},
         'k must be even, and at least 4 for an even sparsity to be below it (pareto, Theorem 21); got 2. Remedy: pass strict=False.'),
        ({"schedule": "under_sparse", "k": 3, "sparsity": 2},
         'k must be even, and at least 4 for an even sparsity to be below it (pareto, Theorem 21); got 3. Remedy: use schedule="sgd" for odd parities.'),
        ({"schedule": "over_sparse", "k": 4, "sparsity": 17},
         "sparsity must be odd, above 4k = 16 and below the 12 inputs (pareto, Lemma 8); got 12. Remedy: pass strict=False."),
        ({"schedule": "under_sparse", "k": 4},
         "X must have an odd number of columns besides the 2 of a neuron (pareto, Lemmas 18 to 20); got shape (50, 12). Remedy: append or drop a column, or pass strict=False."),
        ({"schedule": "correlated", "k": 4},
         "k must be odd and at least 3 (parities, section 2); got 4. Remedy: or pass strict=False."),
        ({"schedule": "correlated", "k": 3, "width": 7},
         "width must be even, because neurons come in pairs; got 7. Remedy: use 8."),
        ({"schedule": "correlated", "k": 3, "second_layer": "svm"},
         "second_layer must be one of 'solver', 'descent'; got 'svm'."),
        ({"schedule": "over_sparse", "k": 2, "sparsity": 9, "method": "paper"},
         "method must be one of 'practical', 'theorem'; got 'paper'."),
        ({"schedule": "under_sparse", "k": 3, "sparsity": 2, "strict": False},
         'k must be even (pareto, Theorem 21); got 3. Remedy: use schedule="sgd" for odd parities.'),
        ({"schedule": "under_sparse", "k": 6, "sparsity": 3, "strict": False},
         "sparsity must be even, or k − 1 = 5, or from k on: the gradient of other neurons is exactly 0; got 3. Remedy: use 4."),
        ({"schedule": "under_sparse", "k": 4, "sparsity": 12, "strict": False},
         "sparsity must be below the 12 inputs; got 12. Remedy: leave some weights small."),
        ({"epsilon": 0.5}, "epsilon must be a finite number in (0, 0.5); got 0.5."),
        ({"schedule": "over_sparse", "k": 20, "sparsity": 9}, "k must be between 1 and the 12 inputs; got 20."),
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


def test_strict_can_be_left():
    """Fewer ones than Lemma 8 asks for: no promise, but on this instance it works."""
    problem = Parity(20, 2)
    model = fitted(problem, 20_000, schedule="over_sparse", k=2, sparsity=7, width=400, strict=False)
    assert error(model, problem) <= 0.01


@pytest.mark.parametrize(
    ("n", "k", "s", "samples", "width"),
    [
        (20, 4, 2, 20_000, 1000),  # n − s even: ties
        (15, 4, 3, 4000, 2000),  # s odd, k = s + 1
        (14, 2, 1, 2000, 200),
        (14, 2, 2, 2000, 800),  # s = k
        (15, 2, 5, 4000, 200),  # s > k
    ],
)
def test_under_sparse_without_strict_carries_out_what_the_theorem_excludes(n, k, s, samples, width):
    problem = Parity(n, k)
    options = {"schedule": "under_sparse", "k": k, "sparsity": s, "width": width}
    with pytest.raises(ValueError, match="pass strict=False"):
        fitted(problem, samples, **options)
    model = fitted(problem, samples, strict=False, **options)
    assert error(model, problem) <= 0.01 and model.support_ == problem.support


@pytest.mark.parametrize(("n", "k", "samples", "width"), [(20, 2, 2000, 1200), (12, 4, 20_000, 6000)])
def test_over_sparse_at_s_equal_to_k_is_a_search_through_random_sets(n, k, samples, width):
    problem = Parity(n, k)
    model = fitted(problem, samples, schedule="over_sparse", k=k, sparsity=k, width=width, strict=False)
    assert error(model, problem) <= 0.01 and model.support_ == problem.support


def test_support_by_gap_and_lucky_neurons():
    net = construct.junta(10, [2, 5], [1, -1, -1, 1])
    assert find_support(net, None) == (2, 5) and find_support(net, 1) == (2,)
    start = TwoLayer(np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1.0]]), np.zeros(3), np.ones(3))
    assert lucky_neurons(start, (0, 1)).tolist() == [0]
    assert lucky_neurons(start, (0, 1, 2)).tolist() == [0, 1]
    assert lucky_neurons(start, (0,)).tolist() == [0, 1]
    assert lucky_neurons(init.dense()(6, 5, seed=0), (0, 1)).tolist() == []


def test_lottery_tickets_bookkeeping():
    problem = Parity(12, 2)
    found = lottery_tickets(problem, 12, networks=3, width=30, keep=4, trials=2, steps=2000, test_examples=500)
    assert found.kept.shape == (3, 4) and len(found.wide) == 3
    assert [len(trials) for trials in (*found.rewound, *found.redrawn)] == [2] * 6
    for rewound in found.rewound:
        assert len({history.test_error[0] for history in rewound}) == 1  # the trials of a network share its ticket
        assert rewound[0].train_loss[-1] != rewound[1].train_loss[-1]  # and nothing else
    assert len({history.test_error[0] for redrawn in found.redrawn for history in redrawn}) > 3
    won, drawn = found.success()
    assert won.shape == drawn.shape == (3,)
    assert won.tolist() == [np.mean([h.test_error.min() <= 0.1 for h in trials]) for trials in found.rewound]
    first = found.steps_to()[0]
    assert first.shape == (3, 2)
    assert all(np.isinf(step) or step in found.rewound[0][0].step for step in first.ravel())
    with pytest.raises(ValueError, match="keep must be an integer of at least 1 and at most 5; got 6"):
        lottery_tickets(problem, 12, width=5, keep=6)


def test_tickets_are_the_largest_neurons_by_the_rank_asked_for():
    hidden = np.array([[3.0, 0.0], [1.0, 1.0], [0.5, 0.0], [0.0, 2.0]])
    network = TwoLayer(hidden=hidden, bias=np.zeros(4), output=np.array([0.1, 1.0, -4.0, 0.8]))
    assert _largest(network, 2, "rows").tolist() == [0, 3]
    assert _largest(network, 2, "output").tolist() == [1, 2]
    assert _largest(network, 2, "product").tolist() == [2, 3]  # 0.3, 1.41, 2, 1.6
    with pytest.raises(ValueError, match="rank must be one of 'product', 'rows', 'output'; got 'norm'"):
        lottery_tickets(Parity(12, 2), 12, rank="norm")


def test_retraining_stops_where_it_is_told_to():
    options = {"networks": 1, "width": 30, "keep": 10, "steps": 1000, "evaluate": 100, "test_examples": 500}
    found = lottery_tickets(Parity(12, 2), 12, retrain_steps=3000, stop_error=0.1, **options)
    assert found.wide[0].step[-1] == 1000
    (steps,), errors = found.steps_to()[0], found.rewound[0][0].test_error
    assert steps[0] <= 3000 and steps[0] == found.rewound[0][0].step[-1] and errors[-1] <= 0.1


# Continuous test data has to be cut in two for an estimator of Boolean functions; `binarize` does that on request only.
@pytest.mark.no_cover
@parametrize_with_checks([ParityNetClassifier(width=30, max_steps=300, binarize="median", random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
