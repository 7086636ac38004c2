"""Optimisers against their formulas written out, in every precision, and stacks of networks on a device."""

import numpy as np
import pytest

from fewfire._dense.optimisers import SGD, AdamW
from fewfire._extension import without_extension

rng = np.random.default_rng(0)
START, GRADIENTS = rng.normal(size=9), rng.normal(size=(6, 9))
DECAYED = 5


def adamw(rule, start, gradients, rates):
    w, m, v, (beta1, beta2) = start.copy(), 0.0, 0.0, rule.betas
    shrinking = np.arange(9) < DECAYED
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        w = w * (1 - rate * rule.weight_decay * shrinking)
        w = w - rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + 1e-8)
    return w


def sgd(rule, start, gradients, rates):
    w, velocity, shrinking = start.copy(), 0.0, np.arange(9) < DECAYED
    for g, rate in zip(gradients, rates, strict=True):
        velocity = rule.momentum * velocity - rate * g
        w = w * (1 - rate * rule.weight_decay * shrinking) + velocity
    return w


CASES = [
    (AdamW(0.1, 0.3), adamw),
    (AdamW(0.05, 0.0, betas=(0.5, 0.9)), adamw),
    (AdamW(0.05, 0.1, betas=(0.0, 0.0)), adamw),
    (SGD(0.1, 0.2), sgd),
    (SGD(0.1, 0.0, momentum=0.0), sgd),
]


@pytest.mark.parametrize(("rule", "formula"), CASES)
@pytest.mark.parametrize(("dtype", "exact"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_steps_are_the_formula(rule, formula, dtype, exact):
    factors = np.array([1.0, 1.0, 0.5, 0.5, 0.25, 0.0])
    expected = formula(rule, START, GRADIENTS, rule.learning_rate * factors)
    for numpy_alone in (False, True):
        parameters, descent = START.astype(dtype), rule.start(9, DECAYED, dtype=dtype)
        for factor, gradient in zip(factors, GRADIENTS.astype(dtype), strict=True):
            descent.factor = factor
            if numpy_alone:
                with without_extension():
                    descent.step(parameters, gradient)
            else:
                descent.step(parameters, gradient)
        np.testing.assert_allclose(parameters, expected, rtol=0, atol=exact)
        assert descent.steps == 6 and parameters.dtype == descent.state.dtype == dtype


def moved(value, state, slope, factors):
    """A step as the kernel for tabular networks takes it (Rule.move in tabular/cuda/network.cuh)."""
    if len(state) == 1:
        velocity = state[0] * factors[0] - slope * factors[1]
        return value + velocity * factors[2], [velocity]
    mean = state[0] + factors[0] * (slope - state[0])
    square = state[1] + factors[1] * (slope**2 - state[1])
    return value - factors[2] * (mean / (np.sqrt(square) + factors[3])), [mean, square]


@pytest.mark.parametrize(("rule", "formula"), CASES)
def test_networks_of_a_stack_count_their_own_steps(rule, formula):
    moves = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 0]], dtype=bool)
    shares = np.array([1.0, 0.5, 0.1])
    parameters, stack = np.stack([START] * 3), rule.start_stack(3)
    state = [np.zeros_like(parameters) for _ in range(stack.states)]
    for part in (slice(0, 2), slice(2, 6)):  # two epochs
        all_factors = stack.factors(moves[part], shares)
        for step, gradient in enumerate(GRADIENTS[part]):
            parameters[:, :DECAYED] *= (1 - rule.learning_rate * rule.weight_decay * shares * moves[part][step])[
                :, None
            ]
            factors = [factor[step][:, None] for factor in all_factors]
            parameters, state = moved(parameters, state, np.stack([gradient] * 3), factors)
    for network, row in enumerate(parameters):
        taken = GRADIENTS[moves[:, network]]
        expected = formula(rule, START, taken, [rule.learning_rate * shares[network]] * len(taken))
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)


def test_decay_and_batches_follow_the_rows():
    assert [AdamW().decay(rows) for rows in (50, 100, 3000)] == [3.0, 3.0, 0.1]
    assert [AdamW().rows_per_step(rows) for rows in (10, 100, 800, 10**5)] == [10, 16, 100, 256]
    assert SGD(batch_size=50).rows_per_step(30) == 30 and SGD(weight_decay=0.5).decay(10) == 0.5
