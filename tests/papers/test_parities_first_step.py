"""parities, the first step: exact sums against the whole cube and against samples, Lemmas 3 to 7 and 12, their errata."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.papers import parities
from fewfire.problems import CorrelatedParity


def start(n, neurons, seed=0):
    return Stream(seed, "signs").integers(3, (neurons, n)) - 1


def mass_of(X, support, half):
    uniform = np.full(len(X), 1 / len(X))
    equal = np.abs(X[:, support].sum(axis=1)) == len(support)
    correlated = equal / equal.sum()
    return {"uniform": uniform, "correlated": correlated, "both": (uniform + correlated) / 2}[half]


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(5, 9),
    k=st.sampled_from([3, 5]),
    half=st.sampled_from(["both", "uniform", "correlated"]),
    bias=st.floats(-1, 3),
)
def test_the_sums_are_those_of_the_whole_cube(seed, n, k, half, bias):
    signs, support = start(n, 6, seed), sorted(Stream(seed, "support").permutation(n)[:k].tolist())
    X = cube(n).astype(float)
    weighted = mass_of(X, support, half) * X[:, support].prod(axis=1)
    score = X @ signs.T / sqrt(n) + bias
    # A score that is 0 or 6 up to rounding may fall on either side.
    clear = (np.abs(score * (score - 6)) > 1e-9).all(axis=0)
    assume(clear.any())
    signs, score = signs[clear], score[:, clear]
    found = parities.first_step(signs, support, bias, half)
    fires = ((score > 0) & (score < 6)).astype(float)
    assert np.allclose(found.weights, (weighted[:, None] * fires).T @ X, atol=1e-12)
    assert np.allclose(found.bias, weighted @ fires, atol=1e-12)
    assert np.allclose(found.output, weighted @ np.clip(score, 0, 6), atol=1e-12)


def test_a_sample_of_the_problem_comes_close_at_any_size():
    n, problem = 301, CorrelatedParity(301, 5)
    X, y = (array.astype(np.float32) for array in problem.sample(40_000, seed=0))
    signs = start(n, 8)
    found = parities.first_step(signs, problem.support, 1 / 40)
    fires = (X @ signs.T / sqrt(n) + 1 / 40 > 0) * y[:, None]
    # Six standard errors: 8 neurons and 302 averages each.
    assert np.abs(fires.T @ X / len(X) - found.weights).max() < 6 / sqrt(len(X))
    assert np.abs(fires.mean(axis=0) - found.bias).max() < 6 / sqrt(len(X))


@pytest.mark.parametrize(("n", "k"), [(51, 3), (101, 3), (101, 5)])
def test_lemmas_3_and_4_on_the_uniform_half(n, k):
    """Over w: |E[f σ']| is below the bound with probability 1 − 1/c for one coordinate, 1 − 1/C for all."""
    found = parities.first_step(start(n, 4000), range(k), 1 / (8 * k), "uniform")
    for values in (found.bias, found.weights[:, n - 1]):
        assert np.abs(values).mean() <= parities.lemma_3(n, k, 1.0)
        assert (np.abs(values) > parities.lemma_3(n, k, 4.0)).mean() <= 1 / 4
    largest = np.maximum(np.abs(found.weights[:, k:]).max(axis=1), np.abs(found.bias))
    assert (largest > parities.lemma_4(n, k, 2.0)).mean() <= 1 / 2
    assert parities.lemma_4(n, k, 2.0) == pytest.approx(2 * (n - 1) * parities.lemma_3(n, k, 1.0))


def test_lemma_5_balanced_neurons_have_no_gradient_off_the_support_on_the_correlated_half():
    signs = start(101, 500)
    balanced = signs[:, :5].sum(axis=1) == 0
    found = parities.first_step(signs, range(5), 1 / 40, "correlated")
    assert np.abs(found.weights[balanced, 5:]).max() < 1e-14 and np.abs(found.bias[balanced]).max() < 1e-14
    assert np.abs(found.bias[~balanced]).min() > 1e-3


@pytest.mark.parametrize(("n", "k"), [(101, 3), (301, 5), (1001, 7)])
def test_lemma_6_with_its_constant(n, k):
    """E[h σ'] is E[h]·φ up to the bound for h = √n x_j f_A, whose mean is ½."""
    signs, bias = start(n, 400), 1 / (8 * k)
    found = parities.first_step(signs, range(k), bias)
    share = parities.firing_share(signs, range(k), bias)
    free = np.count_nonzero(signs[:, k:], axis=1)
    bound = np.array([parities.lemma_6(k, size) for size in free])
    inside = found.weights[:, :k]
    assert (np.abs(inside - share[:, None] / 2) <= bound[:, None]).all()
    assert (bound <= 1.6 * k / np.sqrt(free)).all()


def test_erratum_of_lemma_6_the_strip_beyond_six():
    """For h ≡ 1, weights 1, b = 6 and n = 9: firing exceeds φ and the printed strips, which end at 6."""
    n, k, bias = 9, 3, 6.0
    X = cube(n).astype(float)
    mass = mass_of(X, range(k), "both")
    off, score = X[:, k:].sum(axis=1) / sqrt(n) + bias, X.sum(axis=1) / sqrt(n) + bias
    edge = k / sqrt(n)
    fires = mass[(score > 0) & (score < 6)].sum()
    window = mass[(off > edge) & (off < 6 - edge)].sum()
    low, high = (off > -edge) & (off <= edge), (off >= 6 - edge) & (off < 6)
    assert fires > window + mass[low | high].sum() + 0.1
    assert fires <= window + mass[low | ((off >= 6 - edge) & (off < 6 + edge))].sum()
    assert window == pytest.approx(parities.firing_share(np.ones((1, n)), range(k), bias)[0])


def test_erratum_of_lemma_7_the_slope_is_half_of_the_share():
    """w⁽¹⁾_j = αu/√n on A with α = φ/2; printed α = φ, which stays off by ¼ however large n is."""
    n, k = 20_001, 3
    signs = start(n, 40)
    signs = signs[signs[:, :k].sum(axis=1) == 0]
    step, share = (call(signs, range(k), 1 / (8 * k)) for call in (parities.first_step, parities.firing_share))
    assert np.abs(step.weights[:, :k] - share[:, None] / 2).max() < 0.02
    assert np.abs(step.weights[:, :k] - share[:, None]).min() > 0.2
    # Off A the weights vanish; printed, αu/√n is subtracted there too.
    assert np.abs(step.weights[:, k:]).max() < 1e-6


def test_lemma_7_share_of_good_neurons():
    n, k = 301, 5
    signs = start(n, 4000)
    good = parities.good_start(signs, range(k), 1 / (8 * k))
    # Four standard errors about the exact probability that the weights on A are balanced.
    probability = parities.balanced_probability(k)
    assert abs(good.mean() - probability) < 4 * sqrt(probability / 4000)
    assert good.mean() >= parities.good_neuron_bound(k)
    assert (signs[good][:, :k].sum(axis=1) == 0).all()


@pytest.mark.parametrize(("n", "k"), [(9, 3), (101, 5), (301, 7)])
def test_lemma_12(n, k):
    found = parities.first_step(start(n, 300), range(k), 1 / (8 * k))
    assert np.abs(found.output).max() <= parities.lemma_12(n, k)


def test_erratum_signs_of_the_first_step():
    """The hinge loss has slope −y at 0: u⁽¹⁾ = +E[yσ], w⁽¹⁾ = +u E[yσ'x]; both are printed with a minus."""
    from fewfire.engines import gradients
    from fewfire.networks import init

    n, k = 11, 3
    net = init.symmetric(k)(n, 40, seed=0).astype(np.float64)
    X = cube(n)
    rows = np.repeat(X, (2 * CorrelatedParity(n, k).density(X)).astype(int), axis=0)  # D_A as a table of equal weights
    slopes = gradients(net, rows, rows[:, :k].prod(axis=1))
    step = parities.first_step(np.rint(net.hidden * sqrt(n)), range(k), 1 / (8 * k))
    assert np.allclose(-slopes.output, step.output, atol=1e-7)
    assert np.allclose(-slopes.hidden, net.output[:, None] * step.weights, atol=1e-6)
    assert np.allclose(-slopes.bias, net.output * step.bias, atol=1e-6)
    assert np.abs(slopes.output).max() > 1e-3  # so the printed sign is another number


def test_sampling_noise_of_the_biases_swamps_them():
    """At 100,000 examples of (301, 5), biases of good neurons move by 0.08, three times b = 1/40."""
    n, k, m = 301, 5, 500
    noise = parities.bias_noise(n, k, m)
    signs = start(n, 300)
    signs = signs[signs[:, :k].sum(axis=1) == 0]
    X, y = (array.astype(np.float32) for array in CorrelatedParity(n, k).sample(60 * m, seed=3))
    u = Stream(0, "u").uniform(len(signs), -n / k, n / k)
    signed = ((X @ signs.T / sqrt(n) + 1 / (8 * k) > 0) * y[:, None]).reshape(60, m, -1)
    # 60 samples; the neurons of one sample move together, so the mean square is known to about 20%.
    assert 0.7 * noise < sqrt(np.mean((u * signed.mean(axis=1)) ** 2)) < 1.3 * noise
    assert 3 / (8 * k) < parities.bias_noise(n, k, 100_000) < 4 / (8 * k)
    assert parities.bias_noise(n, k, 4 * m) == pytest.approx(noise / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parities.first_step([[0.5, 1.0]], [0], 0.1), "signs must be a table of −1, 0 and 1 of shape (neurons, n); "
         "got shape (1, 2). Remedy: pass √n times the weights of init.symmetric, rounded."),
        (lambda: parities.first_step([[0, 1]], [0], 0.1, "third"),
         "half must be one of 'both', 'uniform', 'correlated'; got 'third'."),
        (lambda: parities.lemma_3(5, 5, 1.0), "k must be an integer of at least 1 and at most 4; got 5."),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message
