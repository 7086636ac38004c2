"""pareto: Proposition 3, the statistical limit, and the requirements of Theorems 4, 5, 16 and 21."""

from itertools import combinations
from math import comb, log, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.learners.baselines._exhaustive_parity import search
from fewfire.papers import pareto
from fewfire.problems import Parity


def test_lemma_6_by_enumeration():
    """The mean over all parities of the squared correlation with any function bounded by 1 is at most 1/C(n, k)."""
    n, k = 8, 3
    X = cube(n).astype(int)
    slopes = (Stream(0, "lemma 6").normal((200, n)) @ X.T > 0) * X.T[0]
    parities = np.array([X[:, list(members)].prod(axis=1) for members in combinations(range(n), k)])
    squares = (slopes @ parities.T / len(X)) ** 2
    assert squares.mean(axis=1).max() <= 1 / comb(n, k)


def test_proposition_3_in_numbers():
    found = pareto.frontier(20, 4, parameters=10, steps=5, tau=0.1, delta=0.5)
    assert found.demand == comb(20, 4) / 4
    assert found.supply == pytest.approx(10 * 5 / (0.01 * 0.5))
    assert not found.excluded
    assert found.success_bound == 1.0
    coarse = pareto.frontier(20, 4, parameters=10, steps=5, tau=1.0, delta=0.5)
    assert coarse.excluded
    assert coarse.success_bound == pytest.approx(4 * 50 / comb(20, 4))
    assert pareto.frontier(20, 4, 10, 5, 1.0, fraction=0.5).demand == comb(20, 4) / 2  # as printed


@given(
    n=st.integers(10, 60),
    k=st.integers(1, 8),
    r=st.integers(1, 10**6),
    T=st.integers(1, 10**6),
    delta=st.floats(0.01, 1),
)
def test_each_threshold_alone_ends_the_exclusion(n, k, r, T, delta):
    base = {"parameters": r, "steps": T, "tau": 0.05, "delta": delta}
    found = pareto.frontier(n, k, **base)
    thresholds = found.thresholds()
    assert thresholds["samples"] == pytest.approx(thresholds["tau"] ** -2)
    for name in ("parameters", "steps", "tau"):
        moved = pareto.frontier(n, k, **{**base, name: thresholds[name]})
        assert moved.supply == pytest.approx(moved.demand)
    assert found.success_bound == pytest.approx(min(1, thresholds["delta"] and delta / found.factor))


def test_a_demand_past_the_floats_is_infinite():
    found = pareto.frontier(3000, 1500, 1e9, 1e9, 1e-9)
    assert found.demand == np.inf
    assert found.excluded


def test_gradient_precision():
    assert pareto.gradient_precision(400) == 0.05
    tau = pareto.gradient_precision(400, parameters=50, steps=3, failure=0.1)
    # Hoeffding at τ/2, times the number of means, is the failure probability asked for.
    assert 2 * 150 * np.exp(-400 * (tau / 2) ** 2 / 2) == pytest.approx(0.1)


def test_the_statistical_limit():
    assert pareto.samples_needed(50, 3) == 15
    assert pareto.samples_needed(4, 4) == 0
    assert pareto.samples_sufficient(4, 4) == 0
    # Θ(k log n): between k log₂(n/k) and k log₂ n.
    for n, k in ((50, 3), (1000, 5), (10_000, 8)):
        assert k * log2(n / k) <= pareto.samples_needed(n, k) <= k * log2(n)
    assert pareto.samples_needed(50, 3, success=0.25) == 13
    assert pareto.samples_needed(50, 3, noise=0.11) == 27  # (14.26 − 1)/(1 − H(0.11)), H(0.11) ≈ 1/2


def test_no_learner_beats_the_counting_bound():
    """With m labels any learner answers at most 2^m sets: the best one, given X, succeeds on that share."""
    n, k = 6, 3
    for m in (1, 2, 3, 4):
        X = Stream(m, "limit").sign_rows(m, n)
        patterns = {tuple(X[:, list(members)].prod(axis=1)) for members in combinations(range(n), k)}
        assert len(patterns) / comb(n, k) <= 2**m / comb(n, k)
    assert pareto.samples_needed(n, k) == 5 == np.ceil(np.log2(20))


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_enough_samples_suffice(noise):
    n, k, delta = 12, 3, 0.2
    m = pareto.samples_sufficient(n, k, noise, delta)
    problem = Parity(n, k, [1, 5, 7], noise)
    wrong = 0
    for trial in range(200):
        X, y = problem.sample(m, seed=trial)
        found = search(X, y, k, 1)
        # The statement is about the parity itself, without its negation, so a tie or a negation may not count as right.
        wrong += found.best.support != problem.support
    assert wrong / 200 <= delta


def test_theorem_4_interpolates_between_width_and_samples():
    few, many = pareto.theorem_4(200, 4, 17), pareto.theorem_4(200, 4, 34)
    assert few.width / many.width == pytest.approx(2**4)
    assert many.samples / few.samples == pytest.approx(2**3)
    assert few.samples == pytest.approx((17 / 4) ** 3 * 200**2 * log(200))
    assert few.steps == pytest.approx(100)
    assert few.least_sparsity == pytest.approx(100)
    assert pareto.theorem_4(200, 4, 17, 0.3).least_sparsity < 17
    assert few.short(width=1e9, samples=10, steps=10) == {"samples": few.samples, "steps": few.steps}


def test_theorem_16_with_its_constants_is_beyond_practice():
    found = pareto.theorem_16(10**4, 2, 4001, error=0.1)
    assert found.least_sparsity > 2e9
    assert found.samples > 1e14


def test_theorem_16_step_condition_needs_the_norm():
    """Lemma 14: the last term of its bound at T from the printed condition is far above ε, from the corrected below."""
    norm, features, eps = pareto.separator_norm(4), 10.0, 0.01

    def last_term(T):
        return 100 * norm**2 * (features + eps / norm) ** 2 * (1 + log(T)) / (eps * T)

    T = 1e3
    while T / log(T) < 100 / eps**2 * (features + 1 / norm) ** 2:
        T *= 1.01
    assert last_term(T) > 1000 * eps
    from fewfire.papers.pareto.statements._lemmas import _least_steps

    corrected = _least_steps(100 * (norm * features + eps) ** 2 / eps**2)
    assert last_term(corrected) <= eps < last_term(0.99 * corrected)


def test_theorem_5_trades_width_for_samples():
    zero, two = pareto.theorem_5(64, 8, 0), pareto.theorem_5(64, 8, 2)
    assert two.width / zero.width == 64
    assert zero.samples / two.samples == 64
    assert two.steps == 1


def test_theorem_5_needs_the_union_bound_over_the_weights():
    """Printed: (n/k)^(k−s−1) examples. At any constant a share of the weights off the support passes, whatever n is."""
    k, s, neurons = 4, 2, 6

    def passing(n, logarithm):
        """How many weights off the support pass the truncation, the mean over neurons, from 8 log(n)/ξ² examples."""
        gap = pareto.under_sparse_gap(n, k, s)
        size, other = abs(gap.relevant), abs(gap.irrelevant)
        rows, found = round(8 * logarithm / size**2), []
        for seed in range(neurons):
            X = Stream(seed, f"theorem 5, {n}").sign_rows(rows, n).astype(np.float32)
            # The neuron has ones at the first two of the four bits and less than 1/(n − s) elsewhere.
            fires = X[:, :s].sum(axis=1) + X[:, s:].sum(axis=1) / (2 * (n - s)) > 0
            gradient = (fires * X[:, :k].prod(axis=1)) @ X[:, k:] / rows
            found.append(np.count_nonzero(np.abs(gradient) > (size + other) / 2))
        return float(np.mean(found))

    shares = [passing(n, 1.0) / (n - k) for n in (41, 81, 121)]
    assert shares == pytest.approx([0.046] * 3, abs=0.025)  # Pr[|N| > 2], so their number grows as n
    assert passing(41, log(41)) == passing(81, log(81)) == 0
    assert [pareto.theorem_5(n, k, s).samples / (n / k) for n in (21, 81)] == pytest.approx([log(21), log(81)])


def test_theorem_21_by_simulation():
    """With the samples asked for, every good neuron's gradient is above the midpoint exactly on the rest of S."""
    n, k, s = 15, 4, 2
    asked = pareto.theorem_21(n, k, s, delta=0.05)
    gap = pareto.under_sparse_gap(n, k, s)
    middle = (abs(gap.relevant) + abs(gap.irrelevant)) / 2
    X, y = Parity(n, k).sample(int(asked.samples), seed=0)
    for members in combinations(range(k), s):
        weights = np.where(np.isin(np.arange(n), members), 1.0, 0.9 / (n - s))
        gradient = ((X @ weights > 1e-9) * y).astype(np.int64) @ X / len(X)
        chosen = np.flatnonzero(np.abs(gradient) > middle)
        assert set(chosen) == set(range(k)) - set(members)
    rows = Stream(0, "theorem 21").subsets(int(asked.width) // 2 * 200, n, s)
    good = (rows < k).all(axis=1)
    biases = Stream(1, "theorem 21").integers(k, len(rows))
    tables = np.stack([((biases == b) & good).reshape(200, -1).any(axis=1) for b in range(k)])
    assert (~tables.all(axis=0)).mean() <= 0.05


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: pareto.theorem_4(50, 3, 13), r"k must be even \(pareto, Theorem 4\); got 3"),
        (lambda: pareto.theorem_5(50, 4, 1), r"s must be even \(pareto, Theorem 5\); got 1"),
        (
            lambda: pareto.theorem_5(50, 4, 4),
            r"s must be an integer of at least 0 and at most 3; got 4\. Remedy: in the",
        ),
        (
            lambda: pareto.theorem_16(50, 4, 9),
            r"s must be an integer of at least 17 and at most 50; got 9\. Remedy: pareto",
        ),
        (lambda: pareto.frontier(5, 6, 1, 1, 1), r"k must be an integer of at least 0 and at most 5; got 6"),
        (lambda: pareto.samples_needed(5, 2, noise=0.5), r"noise must be a finite number in \[0, 0\.5\)"),
    ],
)
def test_what_the_theorems_exclude_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
