"""Theorems 4/16 and 5/21 of pareto, carried out: gradients by enumeration, what a step leaves of the weights, estimators."""

from itertools import product

import numpy as np
import pytest

from fewfire.engines import Run, Schedule, get_engine
from fewfire.networks import TwoLayer, init
from fewfire.papers import pareto
from fewfire.papers._second_layer import descend_output
from fewfire.papers.correlations import population_correlations, sample_correlations
from fewfire.papers.pareto.algorithms import (
    OverSparseParityClassifier,
    UnderSparseParityClassifier,
    good_neuron_gap,
    over_sparse_step,
    under_sparse_step,
)
from fewfire.problems import Parity

SIZES = [(n, k, s) for n, k, s in product((9, 10, 11), (2, 4, 6), range(1, 9)) if s < n]


def gradients(n, k, row, biases):
    """E[y σ′ x] of one row, averaged over biases: shape (n,)."""
    hidden = np.tile(np.asarray(row, dtype=np.float64), (len(biases), 1))
    net = TwoLayer(hidden, np.asarray(biases, dtype=np.float64), np.ones(len(biases)))
    return population_correlations(net, Parity(n, k).target).weights.mean(axis=0)


@pytest.mark.parametrize(("n", "k", "s"), SIZES)
def test_gradients_of_good_under_sparse_neurons_by_enumeration(n, k, s):
    small = 1 / (2 * (n - s))
    row = np.where(np.arange(n) < s, 1.0, small)  # the support is the first k: inside it or around it
    found = gradients(n, k, row, [small / 4, -small / 4])
    gap = good_neuron_gap(n, k, s)
    relevant = found[s:k] if s < k else found[:k]
    assert relevant == pytest.approx(np.full(len(relevant), gap.relevant), abs=1e-12)
    assert np.abs(found[k:]).max(initial=0.0) == pytest.approx(abs(gap.irrelevant), abs=1e-12)
    if s < k:
        assert found[:s] == pytest.approx(np.zeros(s), abs=1e-12)  # what keeps its old weight has no gradient


def test_the_general_gap_is_lemma_20_where_that_speaks():
    for n, k, s in ((11, 4, 2), (21, 6, 4), (41, 8, 2)):
        lemma, general = pareto.under_sparse_gap(n, k, s), good_neuron_gap(n, k, s)
        assert (general.relevant, general.irrelevant) == pytest.approx((lemma.relevant, lemma.irrelevant))


@pytest.mark.parametrize(("n", "k", "s"), [(11, 2, 2), (11, 2, 9), (11, 2, 6), (11, 4, 4), (13, 4, 9)])
def test_over_sparse_steps_leave_the_support_in_a_good_neuron(n, k, s):
    start = init.over_sparse(k, s, strict=False)(n, 2, 0).astype(np.float64)
    row = np.where(np.arange(n) < s, 1.0, 0.0)
    start = start.with_parameters(hidden=np.stack([row, row]))
    exact = population_correlations(start, Parity(n, k).target).weights
    clean = over_sparse_step(k, s).apply(start, exact).hidden
    assert np.abs(clean[:, :k]) == pytest.approx(np.full((2, k), 1 / (2 * k))) and not clean[:, k:].any()
    assert np.array_equal(clean[0], -clean[1])
    whole = over_sparse_step(k, s, "theorem").apply(start, exact).hidden
    rest = (k - 1) / (s - k) / (2 * k) if s % 2 else None  # Lemma 8's ratio c/C
    assert np.abs(whole[:, :k]) == pytest.approx(np.full((2, k), 1 / (2 * k)))
    if s > k and rest is not None:
        assert np.abs(whole[:, k:s]) == pytest.approx(np.full((2, s - k), rest))
    assert np.abs(whole[:, s:]).max(initial=0.0) < 1e-12


@pytest.mark.parametrize("method", ["practical", "theorem"])
def test_under_sparse_steps_bring_the_missing_bits(method):
    n, k, s = 11, 4, 2
    epsilon = 1 / (2 * (n - s))
    row = np.where(np.arange(n) < s, 1.0, epsilon)
    start = init.under_sparse(k, s, epsilon)(n, 2, 0).astype(np.float64)
    start = start.with_parameters(hidden=np.stack([row, row]))
    exact = population_correlations(start, Parity(n, k).target).weights
    after = under_sparse_step(n, k, s, epsilon, method).apply(start, exact).hidden
    scale = epsilon / (2 * k)
    assert after[:, :s] == pytest.approx(np.full((2, s), scale))
    assert sorted(after[:, s]) == pytest.approx([-scale, scale], rel=epsilon * 1.01)
    assert np.abs(after[:, k:]).max() <= scale * max(epsilon, 1 / (n - k)) * 1.2


def test_the_step_is_that_of_the_engine():
    n, k, s, problem = 15, 2, 9, Parity(15, 2)
    X, y = problem.sample(3000, seed=0)
    start = init.over_sparse(k, s)(n, 60, 0)
    for method in ("practical", "theorem"):
        step = over_sparse_step(k, s, method)
        here = step.apply(start, sample_correlations(start, X, y).weights)
        there = get_engine("reference").train([Run(start, Schedule((step.phase(),)), X, y, seed=0)])[0].network
        np.testing.assert_allclose(here.hidden, there.hidden, atol=1e-6)
        np.testing.assert_array_equal(step.moved(start, here), step.moved(start, there))


def fit(method, second_layer, **options):
    problem = Parity(20, 2)
    X, y = problem.sample(20_000, seed=0)
    options |= {"width": 200, "method": method, "second_layer": second_layer}
    model = OverSparseParityClassifier(k=2, random_state=0, **options).fit(X, y)
    X, y = problem.sample(5000, seed=1)
    return model, float(np.mean(np.maximum(1 - y * model.decision_function(X), 0))), 1 - model.score(X, y)


@pytest.mark.usefixtures("core")  # minutes without it
def test_the_theorems_own_steps_learn_two_bits():
    """No truncation, and descent on the whole sample with λ = ε/B_k²; truncation leaves weights on the support alone."""
    theorem, loss, error = fit("theorem", "descent", max_steps=1500)
    practical, _, _ = fit("practical", "descent", max_steps=1500)
    good = theorem.lucky_neurons_
    assert error <= 0.01 and loss <= 0.5
    assert np.count_nonzero(theorem.network_.hidden[good], axis=1).min() > 9  # noise is everywhere
    assert np.count_nonzero(practical.network_.hidden[good], axis=1).max() == 2


def test_lemma_14_regularises_by_epsilon_over_the_squared_norm():
    """Descent on one constant feature: the minimiser of the hinge loss plus λ/2·u² is known."""
    net = TwoLayer(np.zeros((1, 2)), np.ones(1), np.zeros(1))
    X, y = np.array([[1, 1], [1, -1]], dtype=np.int8), np.ones(2)
    found = descend_output(net, X, y, 2000, get_engine("reference"), 0, regularisation=0.01)
    total = float(found.output[0] + found.offset)  # both reach 1 together: the loss is 0 from there on
    assert total == pytest.approx(1.0, abs=0.11)
    strong = descend_output(net, X, y, 2000, get_engine("reference"), 0, regularisation=4.0)
    assert float(strong.output[0]) == pytest.approx(1 / 4, rel=0.01)  # the loss never reaches 0: u = 1/λ


def learned(learner, problem, samples, **options):
    X, y = problem.sample(samples, seed=0)
    return learner(random_state=0, **options).fit(X, y)


def error(model, problem):
    X, y = problem.sample(5000, seed=1)
    return 1 - model.score(X, y)


@pytest.mark.parametrize(
    ("learner", "problem", "options"),
    [
        (OverSparseParityClassifier, Parity(20, 2, support=[4, 9]), {"width": 400}),
        (UnderSparseParityClassifier, Parity(21, 4), {}),
    ],
)
def test_the_theorems_learn(learner, problem, options):
    model = learned(learner, problem, 10_000, k=problem.k, **options)
    assert error(model, problem) <= 0.01
    assert model.support_ == problem.support
    assert model.n_iter_ == 1  # one step on the first layer, then a convex problem


def test_over_sparse_good_neurons_are_the_scaled_sum():
    """Theorem 4: a neuron that contains the support becomes ±Σ_{j∈S} x_j/(2k); a bad one holds at most one bit."""
    problem, k = Parity(20, 2), 2
    model = learned(OverSparseParityClassifier, problem, 40_000, k=k, width=400)
    start, end = model.initial_network_.hidden, model.network_.hidden
    good = (start[:, :k] == 1).all(axis=1)
    assert good.any() and set(np.flatnonzero(good)) == set(model.lucky_neurons_)
    assert np.allclose(np.abs(end[good, :k]), 1 / (2 * k), rtol=0.1)
    assert not end[good, k:].any()
    assert (np.count_nonzero(end[~good], axis=1) <= 1).all()


def test_descent_on_the_second_layer_as_the_theorem_states():
    problem = Parity(20, 2)
    options = {"k": 2, "width": 400, "second_layer": "descent"}
    assert error(learned(OverSparseParityClassifier, problem, 10_000, max_steps=3000, **options), problem) <= 0.05


@pytest.mark.parametrize(
    ("learner", "options", "message"),
    [
        (OverSparseParityClassifier, {"k": 3, "sparsity": 9},
         'k must be even (pareto, Theorem 4); got 3. Remedy: use ParityNetClassifier for odd parities.'),
        (OverSparseParityClassifier, {"k": 2, "sparsity": 2},
         "sparsity must be odd, above 4k = 8 and below the 12 inputs (pareto, Lemma 8); got 2. Remedy: use 9, or pass strict=False."),
        (UnderSparseParityClassifier, {"k": 4, "sparsity": 3},
         "sparsity must be even, above 0 and below k = 4 (pareto, Theorem 21); got 3. Remedy: use 2, or pass strict=False."),
        (UnderSparseParityClassifier, {"k": 2, "sparsity": 2},
         'k must be even, and at least 4 for an even sparsity to be below it (pareto, Theorem 21); got 2. Remedy: pass strict=False.'),
        (UnderSparseParityClassifier, {"k": 3, "sparsity": 2},
         'k must be even, and at least 4 for an even sparsity to be below it (pareto, Theorem 21); got 3. Remedy: use ParityNetClassifier for odd parities.'),
        (OverSparseParityClassifier, {"k": 4, "sparsity": 17},
         "sparsity must be odd, above 4k = 16 and below the 12 inputs (pareto, Lemma 8); got 17. Remedy: pass a smaller one and strict=False."),
        (UnderSparseParityClassifier, {"k": 4},
         "X must have an odd number of columns besides the 2 of a neuron (pareto, Lemmas 18 to 20); got shape (50, 12). Remedy: append or drop a column, or pass strict=False."),
        (OverSparseParityClassifier, {"k": 2, "sparsity": 9, "method": "paper"},
         "method must be one of 'practical', 'theorem'; got 'paper'."),
        (UnderSparseParityClassifier, {"k": 3, "sparsity": 2, "strict": False},
         'k must be even (pareto, Theorem 21); got 3. Remedy: use ParityNetClassifier for odd parities.'),
        (UnderSparseParityClassifier, {"k": 6, "sparsity": 3, "strict": False},
         "sparsity must be even, or k − 1 = 5, or from k on: the gradient of other neurons is exactly 0; got 3. Remedy: use 4."),
        (UnderSparseParityClassifier, {"k": 4, "sparsity": 12, "strict": False},
         "sparsity must be below the 12 inputs; got 12. Remedy: leave some weights small."),
        (OverSparseParityClassifier, {"k": 2, "epsilon": 0.5}, "epsilon must be a finite number in (0, 0.5); got 0.5."),
        (OverSparseParityClassifier, {"k": 2, "second_layer": "svm"}, "second_layer must be one of 'solver', 'descent'; got 'svm'."),
        (OverSparseParityClassifier, {"k": 20}, "k must be an integer of at least 1 and at most 12; got 20."),
    ],
)  # fmt: skip
def test_refusals(learner, options, message):
    X, y = Parity(12, 2).sample(50, seed=0)
    with pytest.raises(ValueError) as caught:
        learner(**options).fit(X, y)
    assert str(caught.value) == message


def test_strict_can_be_left():
    """Fewer ones than Lemma 8 asks for: no promise, but on this instance it works."""
    problem = Parity(20, 2)
    model = learned(OverSparseParityClassifier, problem, 20_000, k=2, sparsity=7, width=400, strict=False)
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
    options = {"k": k, "sparsity": s, "width": width}
    with pytest.raises(ValueError, match="pass strict=False"):
        learned(UnderSparseParityClassifier, problem, samples, **options)
    model = learned(UnderSparseParityClassifier, problem, samples, strict=False, **options)
    assert error(model, problem) <= 0.01 and model.support_ == problem.support


@pytest.mark.parametrize(("n", "k", "samples", "width"), [(20, 2, 2000, 1200), (12, 4, 20_000, 6000)])
def test_over_sparse_at_s_equal_to_k_is_a_search_through_random_sets(n, k, samples, width):
    problem = Parity(n, k)
    model = learned(OverSparseParityClassifier, problem, samples, k=k, sparsity=k, width=width, strict=False)
    assert error(model, problem) <= 0.01 and model.support_ == problem.support
