"""The proof of parities, Theorem 2, as instruments on real networks: good neurons, biases, u*, drift."""

import numpy as np
import pytest

from fewfire._cube import cube
from fewfire.networks import init
from fewfire.papers import parities
from fewfire.papers.parities.algorithms import good_mask, learn_correlated_parity, population_step
from fewfire.papers.parities.proof import bias_movement, drift_bound, measured_drift, separator
from fewfire.problems import CorrelatedParity


def network(n, k, width, seed=0):
    start = init.symmetric(k)(n, width, seed=seed)
    return start, population_step(start, range(k))


@pytest.mark.parametrize("method", ["lemma", "least"])
def test_the_separator_separates_the_whole_cube(method):
    """At n = 15 every input is visited: g*f is at least the stated margin, which the other inputs cannot spoil."""
    start, first = network(15, 3, 3000)
    found = separator(start, first, range(3), method)
    X = cube(15)
    value = first.astype(np.float64).with_parameters(output=found.output)(X) * X[:, :3].prod(axis=1)
    assert found.margin > 0 and value.min() >= found.margin - 1e-9
    assert found.norm == pytest.approx(np.linalg.norm(found.output))
    assert found.neurons == np.count_nonzero(found.output)
    assert set(np.flatnonzero(found.output)) <= set(np.flatnonzero(good_mask(start, range(3))))


def test_lemma_10_holds_on_a_wide_network_and_least_is_less():
    """Width 20,000 at (301, 5): every feature within 1/(5k), margin above ½, norm below the lemma's."""
    start, first = network(301, 5, 20_000)
    found = separator(start, first, range(5))
    assert found.deviation <= 1 / 25 and found.margin >= 0.5
    assert found.norm / found.margin <= parities.separator_norm(5, 10_000)
    least = separator(start, first, range(5), "least")
    assert least.margin == pytest.approx(1) and least.norm < found.norm / found.margin


def test_a_network_without_good_neurons_has_no_separator():
    start, first = network(15, 3, 2)
    without_good = next(
        (s, f) for seed in range(50) for s, f in [network(15, 3, 2, seed)] if not good_mask(s, range(3)).any()
    )
    found = separator(*without_good, range(3))
    assert (found.neurons, found.norm, found.margin) == (0, 0.0, -np.inf)
    with pytest.raises(ValueError, match="support must have at most 12 inputs to visit all their patterns; got 13"):
        separator(start, first, range(13))
    with pytest.raises(ValueError, match="method must be one of 'lemma', 'least'; got 'svm'"):
        separator(start, first, range(3), "svm")


def test_the_exact_step_moves_good_biases_by_nothing_and_a_sample_by_its_noise():
    n, k, m = 201, 5, 5000
    start, first = network(n, k, 1000)
    good = good_mask(start, range(k))
    assert np.abs(first.bias - start.bias)[good].max() < 1e-4
    rms = [bias_movement(start, *CorrelatedParity(n, k).sample(m, seed), range(k)) for seed in range(8)]
    # The neurons of one sample move together: eight samples give the mean square to about a half.
    assert 0.6 < np.sqrt(np.mean(np.square(rms))) / parities.bias_noise(n, k, m) < 1.5


def test_drift_keeps_to_lemma_13_at_either_rate():
    problem = CorrelatedParity(51, 3)
    for rate in (0.5, "theorem"):
        (best,) = learn_correlated_parity(problem, problem.support, width=100, steps=50, learning_rate=rate)
        measured, bound = measured_drift(best), drift_bound(best, 3)
        assert all(value <= limit for value, limit in zip(measured, bound, strict=True))
    first = measured_drift(best.__class__(best.initial, best.first, best.first, 1, best.rates, best.result))
    assert first.hidden == first.bias == 0 and first.output <= parities.lemma_12(51, 3)
