"""Sampled spectra: intervals cover known values as often as they claim, and are reproducible."""

import math

import numpy as np
import pytest

from fewfire import fourier
from fewfire.fourier import _sampled

N = 40


def mixed(X):
    """x₀ + ½ x₁x₂ − ¼ x₁x₄x₅: real values, every quantity known."""
    return X[:, 0] + 0.5 * X[:, 1] * X[:, 2] - 0.25 * X[:, [1, 4, 5]].prod(axis=1)


NORM = 1 + 0.25 + 0.0625
SENSITIVITY = 1 + 2 * 0.25 + 3 * 0.0625


def noise(rho):
    return 0.5 * ((1 - rho) * 1 + (1 - rho**2) * 0.25 + (1 - rho**3) * 0.0625)


QUANTITIES = {
    "norm_squared": (lambda s: s.norm_squared(), NORM),
    "coefficient": (lambda s: s.coefficient([2, 1]), 0.5),
    "absent coefficient": (lambda s: s.coefficient([7]), 0.0),
    "average_sensitivity": (lambda s: s.average_sensitivity(), SENSITIVITY),
    "influence": (lambda s: s.influences()[1], 0.25 + 0.0625),
    "noise_sensitivity": (lambda s: s.noise_sensitivity(0.6), noise(0.6)),
    "negative rho": (lambda s: s.noise_sensitivity(-0.5), noise(-0.5)),
}


@pytest.mark.parametrize("name", QUANTITIES)
def test_intervals_cover_the_truth_as_often_as_they_claim(name):
    """400 intervals at 90%: the count covered has mean 360 and deviation 6; 340 to 380 is 3.3 deviations each way."""
    ask, truth = QUANTITIES[name]
    n = 8 if name == "influence" else N
    covered = sum(
        truth in ask(fourier.sampled(mixed, n, samples=400, seed=seed, confidence=0.9)) for seed in range(400)
    )
    assert 340 <= covered <= 380


def test_intervals_shrink_with_the_square_root_of_the_samples():
    short = fourier.sampled(mixed, N, samples=1000, seed=1).norm_squared()
    long = fourier.sampled(mixed, N, samples=100_000, seed=1).norm_squared()
    assert 8 < (short.high - short.low) / (long.high - long.low) < 12
    assert long.low < long.value < long.high


def test_agrees_with_the_exact_spectrum_of_a_network():
    weights = np.linspace(-1.0, 1.5, 12)

    class Network:
        inputs = 12

        def __call__(self, X):
            return np.maximum(X @ weights - 0.3, 0.0)

    exact = fourier.spectrum(Network())
    estimated = fourier.sampled(Network(), samples=40_000, seed=3, confidence=0.999)
    assert exact.norm_squared in estimated.norm_squared()
    assert exact.average_sensitivity() in estimated.average_sensitivity()
    assert exact.noise_sensitivity(0.8) in estimated.noise_sensitivity(0.8)
    assert exact.coefficient([0, 11]) in estimated.coefficient([0, 11])
    small = fourier.sampled(Network(), samples=4000, seed=3, confidence=0.999)
    for influence, interval in zip(exact.influences(), small.influences(), strict=True):
        assert influence in interval
    for d in (0, 2, 5):
        for rho in (None, 0.3, 0.9):
            bound = estimated.tail(d, rho)
            assert bound.low == 0.0
            assert exact.tail(d) <= bound.value + 1e-2
            assert exact.tail(d) in bound


def test_the_tail_bound_is_claim_2_1_with_the_degree_above():
    estimated = fourier.sampled(mixed, N, samples=500)
    rho = 0.75  # 1 − 1/(3 + 1)
    sensitivity = estimated.noise_sensitivity(rho)
    factor = 2 / (1 - rho**4)
    assert estimated.tail(3) == (factor * sensitivity.value, 0.0, factor * sensitivity.high)
    assert estimated.tail(N) == (0.0, 0.0, 0.0)


def test_the_same_seed_gives_the_same_answer_in_any_blocks(monkeypatch):
    first = fourier.sampled(mixed, N, samples=300, seed=5)
    answers = first.norm_squared(), first.average_sensitivity(), first.noise_sensitivity(0.5), first.influences()
    monkeypatch.setattr(_sampled, "BLOCK_VALUES", 1000)
    again = fourier.sampled(mixed, N, samples=300, seed=5)
    assert again.norm_squared() == answers[0]
    assert again.average_sensitivity() == answers[1]
    assert again.noise_sensitivity(0.5) == answers[2]
    assert np.allclose(again.influences(), answers[3], rtol=1e-12)
    other = fourier.sampled(mixed, N, samples=300, seed=6)
    assert other.norm_squared() != answers[0]


def test_noise_at_the_ends():
    estimated = fourier.sampled(lambda X: X[:, 0], 3, samples=50)
    assert estimated.noise_sensitivity(1.0) == (0.0, 0.0, 0.0)
    assert estimated.noise_sensitivity(-1.0) == (1.0, 1.0, 1.0)


def test_points_with_many_inputs():
    estimated = fourier.sampled(lambda X: X[:, 997] * X[:, 3], 1000, samples=2000)
    assert estimated.coefficient([3, 997]) == (1.0, 1.0, 1.0)
    assert 2.0 in estimated.average_sensitivity()


def test_an_interval_holds_numbers_only():
    interval = _sampled.Interval(0.5, 0.0, 1.0)
    assert 0 in interval
    assert np.float64(1.0) in interval
    assert 1.5 not in interval
    assert "0.5" not in interval
    assert math.nan not in interval


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 1}, "samples must be an integer of at least 2; got 1. Remedy: an interval needs two points"),
        ({"confidence": 1.0}, r"confidence must be a finite number in \(0, 1\); got 1.0"),
        ({"n": None}, "n must be given with a plain callable"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_bad_requests_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fourier.sampled(mixed, **({"n": N} | options))


def test_bad_questions_to_a_sample_are_refused():
    estimated = fourier.sampled(mixed, N, samples=10)
    with pytest.raises(ValueError, match=r"rho must be a finite number in \[0, 1\)"):
        estimated.tail(1, rho=1.0)
    with pytest.raises(ValueError, match="rho must be a finite number"):
        estimated.noise_sensitivity(2.0)
