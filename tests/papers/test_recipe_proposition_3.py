"""Proposition 3 of pareto: the gradients are those of brute force, Lemma 6 holds and can be attained."""

from itertools import combinations

import numpy as np
import pytest

from fewfire._cube import cube
from fewfire.fourier import transform
from fewfire.networks import init
from fewfire.papers import pareto as theory
from fewfire.papers.correlations import population_correlations
from fewfire.papers.pareto.recipes import proposition_3
from fewfire.problems import Parity

N, WIDTH = 5, 3


def members(place):
    return [bit for bit in range(N) if place >> bit & 1]


def test_correlations_are_those_of_brute_force():
    network = init.dense()(N, WIDTH, seed=4)
    X = cube(N)
    found = [table for table, _ in proposition_3.correlations(network, X)]
    assert len(found) == WIDTH * (N + 2)
    for place in range(1, 2**N):
        target = Parity(N, support=members(place)).target
        exact = population_correlations(network, target)
        values = (target(X)[:, None] * network.activation.value(network.preactivations(X))).mean(axis=0)
        for neuron in range(WIDTH):
            output = float(network.output[neuron])
            mine = [float(table[place]) for table in found[neuron * (N + 2) : (neuron + 1) * (N + 2)]]
            wanted = [values[neuron], output * exact.bias[neuron], *(output * exact.weights[neuron])]
            assert mine == pytest.approx(wanted, abs=1e-7)


def test_slopes_are_the_largest_ones():
    network = init.dense()(N, 1, seed=1)
    steepest = [slope for _, slope in proposition_3.correlations(network, cube(N))]
    assert steepest[0] == pytest.approx(network.activation.value(network.preactivations(cube(N))).max())
    assert steepest[1:] == [abs(float(network.output[0]))] * (N + 1)


def test_the_path_does_not_depend_on_the_target_and_obeys_parseval():
    size = (cube(N) < 0).sum(axis=1)
    weight, peak = proposition_3.path(init.dense()(N, WIDTH, seed=2), 3, size)
    shorter, lower = proposition_3.path(init.dense()(N, WIDTH, seed=2), 1, size)
    assert weight.shape == (N + 1,) and peak.shape == (2**N,)
    assert weight.max() <= 1 and (peak**2 <= 1).all()
    # Largest over more steps; the unit, the largest slope, can only grow.
    assert (weight > 0).all() and weight[2:].sum() > 0 and shorter.shape == weight.shape and lower.shape == peak.shape


def test_slopes_that_are_parities_attain_lemma_6():
    size = (cube(N) < 0).sum(axis=1)
    for support in combinations(range(N), 2):
        slope = cube(N)[:, list(support)].prod(axis=1).astype(np.float64)
        assert np.bincount(size, transform(slope) ** 2)[2] == 1.0


def test_erratum_36_the_sample_must_be_good_for_the_target():
    """A slope that is a parity, at h = 0, one example: Assumption 2 as printed holds and no noise below 1 helps."""
    n, k, parameters, steps, tau, delta = 8, 4, 1, 1, 0.5, 0.5
    assert theory.frontier(n, k, parameters, steps, tau, delta).excluded
    slope, example = cube(n)[:, :k].prod(axis=1), 37
    against_zero = [0.0 * slope[example], np.mean(0.0 * slope)]  # ℓ₀(h)·∂h, of the sample and of the population
    assert abs(against_zero[0] - against_zero[1]) <= tau / 2
    targets = [cube(n)[:, list(support)].prod(axis=1) for support in combinations(range(n), k)]
    leaks = [
        abs(target[example] * slope[example] - 0.0) for target in targets
    ]  # from the path that depends on no target
    assert min(leaks) == 1.0 > tau
    # Read for the target, the example breaks the assumption for all but one parity, and nothing is claimed of these.
    errors = [abs(target[example] * slope[example] - np.mean(target * slope)) for target in targets]
    assert sum(error <= tau / 2 for error in errors) == 1


def test_erratum_36_markov_at_half_of_the_noise_needs_a_quarter():
    """Gaps of τ/2 and a little more with probability p have mean square pτ²/4: allowed by ½ up to p = 2δ, by ¼ to δ."""
    tau, delta, gap = 0.2, 0.1, 0.1 + 1e-12
    for fraction, failure in ((0.5, 2 * delta), (0.25, delta)):
        mean_square = fraction * delta * tau**2  # what rT/C(n, k) may be
        assert mean_square / gap**2 == pytest.approx(failure)


SIZE = (cube(N) < 0).sum(axis=1)
TIGHT = proposition_3.parity_slopes(N, 2, SIZE)


def row(parities, halves, hidden=1.0):
    return {"parities": parities, "halves": halves, "hidden_at": [hidden] * len(proposition_3.SUCCESS)}


FALLING = [row(10, [0.1, 0.11, 0.1]), row(1000, [0.001, 0.0012, 0.0009])]


def test_slopes_that_are_parities_leave_what_the_bound_allows_and_half_of_it_would_be_too_few():
    assert TIGHT["weight"] == 1.0
    assert TIGHT["left"] == pytest.approx(proposition_3.FEATURES / 10)  # 4 of C(5, 2) parities need noise 2
    assert TIGHT["allowed"] == pytest.approx(TIGHT["left"]) and TIGHT["printed"] == pytest.approx(TIGHT["left"] / 2)


@pytest.mark.parametrize(
    ("weight", "rows", "attained", "failing"),
    [
        (0.04, FALLING, TIGHT, []),
        (1.01, FALLING, TIGHT, [0]),
        (0.04, FALLING, TIGHT | {"weight": 1.01}, [0]),
        (0.04, [row(10, [0.1, 0.1]), row(1000, [0.001, 0.001], hidden=0.9)], TIGHT, [1]),
        (0.04, FALLING, TIGHT | {"left": TIGHT["left"] + 0.1}, [1]),  # one parity more than the bound allows
        (0.04, FALLING, TIGHT | {"left": TIGHT["left"] - 0.1}, [2]),  # one fewer: room in the bound
        (0.04, [row(10, [0.1, 0.11, 0.1]), row(1000, [0.02, 0.02, 0.02])], TIGHT, [3]),  # C(n, k) to the power −0.36
        (0.04, [row(10, [0.1, 0.1, 0.1]), row(1000, [0.001, 0.05, 0.001])], TIGHT, [3]),  # below −½ in the mean only
    ],
)
def test_what_refutes_each_claim(weight, rows, attained, failing):
    entries = proposition_3.judge(weight, rows, [attained])
    assert [place for place, entry in enumerate(entries) if not entry.passed] == failing
    assert all(entry.refuted_by and entry.effect and entry.power for entry in entries)


def test_a_wrong_constant_would_be_noticed():
    """The bound of the proposition with ½, tested by the same rule, fails on slopes that are parities."""
    entry = proposition_3.judge(0.04, FALLING, [TIGHT | {"allowed": TIGHT["printed"]}])[1]
    assert not entry.passed
    assert proposition_3.judge(0.04, FALLING, [TIGHT])[1].power.probability == 1.0


def test_networks_alone_would_not_notice_it():
    """Why the parities are there: with half of the bound's room the networks' margins stay above 0."""
    outcome = proposition_3.RECIPE.run(settings=proposition_3.HidingSettings(n=8, width=2, steps=2, draws=3))
    assert all(share == 1.0 for row in outcome.data["rows"] for share in row["hidden_at"])
    assert [len(row["halves"]) for row in outcome.data["rows"]] == [3] * 4
