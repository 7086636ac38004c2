"""The starts that the papers' theorems use: symmetric, over-sparse, under-sparse and ntk."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from fewfire._cube import cube
from fewfire._errors import InvalidArgument
from fewfire.networks import init, relu, relu6
from fewfire.networks.init._sparse import over_sparse_biases, under_sparse_biases


def assert_mirrored(net):
    half = net.width // 2
    np.testing.assert_array_equal(net.hidden[:half], net.hidden[half:])
    np.testing.assert_array_equal(net.bias[:half], net.bias[half:])
    np.testing.assert_array_equal(net.output[:half], -net.output[half:])
    assert net.offset == 0.0


@pytest.mark.parametrize(
    "initialiser", [init.symmetric(3), init.symmetric(3, scaled=False), init.over_sparse(2, 9), init.under_sparse(4, 2)]
)
def test_mirrored_starts_are_the_zero_function(initialiser):
    net = initialiser(11, 40, 1)
    assert_mirrored(net)
    size = np.abs(net.features(cube(11))) @ np.abs(net.output)
    assert size.max() > 1  # the halves are not silent
    np.testing.assert_allclose(net(cube(11)) / size.max(), 0, atol=1e-6)  # rounding of one float32 sum


def test_symmetric_distribution():
    n, k = 50, 7
    net = init.symmetric(k, scaled=False)(n, 800, 0)
    assert net.activation == relu6
    assert set(net.hidden.ravel()) == {-1.0, 0.0, 1.0}
    for value in (-1, 0, 1):  # four standard errors of a share of one third
        share = np.mean(net.hidden[:400] == value)
        assert abs(share - 1 / 3) <= 4 * math.sqrt(2 / 9 / (400 * n))
    assert set(net.bias) == {np.float32(1 / (8 * k))}
    assert 0.98 * n / k < np.abs(net.output).max() <= np.float32(n / k)


def test_scaled_symmetric_acts_on_signs_as_the_paper_does_on_scaled_signs():
    n = 8
    paper, ours = init.symmetric(3, scaled=False)(n, 30, 2), init.symmetric(3)(n, 30, 2)
    np.testing.assert_allclose(ours.preactivations(cube(n)), paper.preactivations(cube(n) / math.sqrt(n)), atol=1e-6)


def test_learning_rates_transform_as_documented():
    # One step of loss + λ‖w‖² at rate η on inputs ±1/√n; on ±1 the rate is η/n and the shrink factor the same.
    n, eta, lam = 8, 0.7, 0.2
    X = cube(n).astype(np.float64)
    y = X[:, :3].prod(axis=1)
    paper, ours = (init.symmetric(3, scaled=scaled)(n, 30, 2).astype(np.float64) for scaled in (False, True))

    def step(net, inputs, rate):
        gradient = -((y[:, None] * net.activation.slope(net.preactivations(inputs))).T @ inputs) / len(y)
        return net.with_parameters(hidden=(1 - 2 * eta * lam) * net.hidden - rate * net.output[:, None] * gradient)

    after_paper = step(paper, X / math.sqrt(n), eta)
    after_ours = step(ours, X, eta / n)
    assert np.abs(after_paper(X / math.sqrt(n))).max() > 0.1  # the halves have separated
    np.testing.assert_allclose(after_ours(X), after_paper(X / math.sqrt(n)), atol=1e-5)


def test_over_sparse_distribution():
    net = init.over_sparse(4, 17)(20, 4000, 0)
    assert net.activation == relu
    assert set(np.count_nonzero(net.hidden, axis=1)) == {17}
    assert set(net.hidden.ravel()) == {0.0, 1.0}
    values, counts = np.unique(net.bias[:2000], return_counts=True)
    np.testing.assert_array_equal(values, np.float32([-3.5 / 8, -1.5 / 8]))
    assert abs(counts[0] - 1000) <= 4 * math.sqrt(500)
    assert set(net.output) == {-1.0, 1.0}
    assert abs(net.output[:2000].sum()) <= 4 * math.sqrt(2000)


def test_bias_sets():
    np.testing.assert_allclose(over_sparse_biases(6, 1 / 16) * 12, [-6 + 1 / 16, -4 + 1 / 16, -2 + 1 / 16])
    np.testing.assert_allclose(over_sparse_biases(3) * 6, [-2.5, -0.5])
    np.testing.assert_allclose(under_sparse_biases(4, 0.1) * 8, [-0.3, -0.1, 0.1, 0.3])
    np.testing.assert_allclose(under_sparse_biases(6, 1.0) * 12, [-5, -3, -1, 1, 3, 5])


def test_under_sparse_distribution():
    net = init.under_sparse(4, 2)(9, 4000, 0)
    eps = 1 / 14
    assert set(np.count_nonzero(net.hidden == 1, axis=1)) == {2}
    assert set(net.hidden[net.hidden != 1]) == {np.float32(eps)}
    values, counts = np.unique(net.bias[:2000], return_counts=True)
    np.testing.assert_array_equal(values, under_sparse_biases(4, eps).astype(np.float32))
    assert np.abs(counts - 500).max() <= 4 * math.sqrt(2000 * 3 / 16)


@pytest.mark.parametrize(("n", "changes"), [(9, False), (10, True)])
def test_under_sparse_biases_leave_the_firing_alone_only_when_n_minus_s_is_odd(n, changes):
    net = init.under_sparse(4, 2, strict=False)(n, 60, 0).astype(np.float64)
    without = net.with_parameters(bias=np.zeros(60))
    differs = (net.preactivations(cube(n)) > 0) != (without.preactivations(cube(n)) > 0)
    assert differs.any() == changes


def test_ntk_distribution():
    width, inputs = 2000, 30
    net = init.ntk(threshold=0.25)(inputs, width, 0)
    for values in (net.hidden, net.bias):
        scaled = values.astype(np.float64) * math.sqrt(width)
        assert abs(scaled.mean()) <= 4 / math.sqrt(scaled.size)
        assert abs((scaled**2).mean() - 1) <= 4 * math.sqrt(2 / scaled.size)
    np.testing.assert_allclose(np.abs(net.output), width**-0.2, rtol=1e-6)
    assert abs(np.sign(net.output).sum()) <= 4 * math.sqrt(width)
    assert str(net.activation) == "shifted_relu(0.25)"
    assert net.offset == 0.0


@pytest.mark.parametrize(
    ("initialiser", "share"),
    [
        (init.ntk(activity=0.03), 0.03),
        (init.ntk(exponent=0.75), 100_000**-0.25),
        (init.ntk(activity=0.5), 0.5),
        (init.ntk(threshold="1/m"), norm.sf(1 / math.sqrt(2 * 100_000))),
    ],
    ids=repr,
)
def test_ntk_activity_is_the_one_asked_for(initialiser, share):
    width = 100_000
    net = initialiser(8, width, 0)
    x = np.full((1, 8), 1 / math.sqrt(8))
    assert abs(net.activity(x).fraction - share) <= 4 * math.sqrt(share * (1 - share) / width)


def test_ntk_activity_on_sign_inputs():
    net = init.ntk(activity=0.03, input_norm=4.0)(16, 100_000, 1)
    assert abs(net.activity(np.ones((1, 16))).fraction - 0.03) <= 4 * math.sqrt(0.03 * 0.97 / 100_000)


@pytest.mark.parametrize(("width", "active"), [(100, 50), (1000, 10.5), (10**6, 1e-3)])
def test_activity_threshold_is_the_normal_quantile(width, active):
    expected = math.sqrt(2 / width) * norm.isf(active / width)
    assert init.activity_threshold(width, active) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    wider = init.activity_threshold(width, active, input_norm=math.sqrt(7))
    assert wider == pytest.approx(2 * expected, rel=1e-12, abs=1e-15)


STRICT = "Remedy: change it, or pass strict=False to leave the theorem."


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: init.symmetric(4), f"k must be odd and at least 3 (parities, section 2); got 4. {STRICT}"),
        (lambda: init.symmetric(1), f"k must be odd and at least 3 (parities, section 2); got 1. {STRICT}"),
        (lambda: init.symmetric(9)(5, 10, 0), "k must be an integer of at least 1 and at most 5; got 9. Remedy: a parity has at most as many bits as there are inputs."),
        (lambda: init.symmetric(3)(5, 7, 0), "width must be even, because neurons come in pairs; got 7. Remedy: use 8."),
        (lambda: init.over_sparse(3, 13), f"k must be even (pareto, Lemma 8); got 3. {STRICT}"),
        (lambda: init.over_sparse(2, 10), f"s must be odd and above 4k = 8 (pareto, Lemma 8); got 10. {STRICT}"),
        (lambda: init.over_sparse(2, 7), f"s must be odd and above 4k = 8 (pareto, Lemma 8); got 7. {STRICT}"),
        (lambda: init.over_sparse(2, 9)(9, 10, 0), f"s must be below the number of inputs, 9 (pareto, B.2.2); got 9. {STRICT}"),
        (lambda: init.over_sparse(2, 9, strict=False)(8, 10, 0), "s must be at most the number of inputs, 8; got 9. Remedy: choose fewer non-zero weights."),
        (lambda: init.over_sparse(2, 9, offset=1.0), "offset must be a finite number in (0, 1); got 1.0."),
        (lambda: init.under_sparse(5, 2), f"k must be even (pareto, Lemma 18); got 5. {STRICT}"),
        (lambda: init.under_sparse(4, 3), f"s must be even and below k = 4 (pareto, Lemma 18); got 3. {STRICT}"),
        (lambda: init.under_sparse(4, 4), f"s must be even and below k = 4 (pareto, Lemma 18); got 4. {STRICT}"),
        (lambda: init.under_sparse(4, 2)(10, 8, 0), f"inputs must leave inputs − s odd for s = 2 (pareto, Lemmas 18 to 20); got 10. {STRICT}"),
        (lambda: init.under_sparse(4, 2)(3, 8, 0), "k must be an integer of at least 1 and at most 3; got 4. Remedy: a parity has at most as many bits as there are inputs."),
        (lambda: init.under_sparse(4, 2, 0.2)(9, 8, 0), "eps must be below 1/(inputs − s) = 0.142857; got 0.2. Remedy: pass eps=None for half of that."),
        (lambda: init.ntk(), "ntk takes exactly one of activity, exponent and threshold; got a call with none. Remedy: write ntk(activity=0.03)."),
        (lambda: init.ntk(0.1, threshold=1.0), "ntk takes exactly one of activity, exponent and threshold; got a call with activity and threshold. Remedy: write ntk(activity=0.03)."),
        (lambda: init.ntk(0.6), "activity must be a finite number in (0, 0.5]; got 0.6."),
        (lambda: init.ntk(exponent=1.0), "exponent must be a finite number in (-inf, 1); got 1.0."),
        (lambda: init.ntk(threshold="1/n"), "threshold must be a number of at least 0 or '1/m'; got '1/n'."),
        (lambda: init.ntk(threshold=-1.0), "threshold must be a finite number in [0, inf); got -1.0."),
        (lambda: init.activity_threshold(10, 6), "active must be a finite number in (0, 5]; got 6. Remedy: a threshold of 0 leaves half of the neurons active."),
    ],
)  # fmt: skip
def test_refusals_of_theory_starts(call, message):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert str(caught.value) == message


def test_strict_false_lifts_the_conditions():
    assert init.symmetric(4, strict=False)(6, 4, 0).width == 4
    assert init.over_sparse(3, 4, strict=False)(6, 4, 0).width == 4
    assert init.under_sparse(3, 3, strict=False)(7, 4, 0).width == 4
