"""The statistical query oracle and its learners, and Theorem 14 of sparse-activations at small sizes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire.papers import sparse_activations as theory
from fewfire.papers.sparse_activations.statistical_queries import SQOracle, learn_parity
from fewfire.problems import Parity

MODES = ("honest", "adversarial")


def correlation(members):
    return lambda X, y: y * X[:, list(members)].prod(axis=1)


def random_query(seed, n):
    """Any function of (x, y) with values in [−1, 1]."""
    table = np.random.default_rng(seed).uniform(-1, 1, (2, 2**n))
    return lambda X, y: table[(np.asarray(y) > 0).astype(int), (X < 0) @ (1 << np.arange(n))]


@given(st.integers(0, 2**32), st.sampled_from(MODES), st.floats(0, 1))
def test_every_answer_is_within_the_tolerance(seed, mode, tolerance):
    problem = Parity(5, support=[0, 2, 3])
    phi = random_query(seed, 5)
    X = cube(5)
    truth = float(np.mean(phi(X, problem.target(X))))
    oracle = SQOracle(problem, tolerance, mode)
    for _ in range(3):
        assert abs(oracle.query(phi) - truth) <= tolerance + 1e-12
    assert oracle.queries == 3
    if mode == "honest":
        assert oracle.query(phi) == pytest.approx(truth, abs=1e-12)


def test_adversarial_answers_reveal_least():
    oracle = SQOracle(Parity(6, support=[1, 4]), 0.3, "adversarial")
    assert oracle.query(correlation([1, 4])) == pytest.approx(0.7)
    assert oracle.query(correlation([1])) == 0.0
    assert oracle.query(lambda X, y: 0.25 * (X[:, 1] * X[:, 4] * y)) == 0.0  # 0.25 ≤ τ is hidden
    assert oracle.query(lambda X, y: np.full(len(y), 0.5)) == pytest.approx(0.5)  # independent of labels: honest
    assert SQOracle(Parity(6, 2), 1.0, "adversarial").query(correlation([0, 1])) == 0.0


def test_label_noise_shrinks_correlations():
    oracle = SQOracle(Parity(5, 2, noise=0.1), 0.0)
    assert oracle.query(correlation([0, 1])) == pytest.approx(0.8)
    assert learn_parity(SQOracle(Parity(5, 2, noise=0.1), 0.3, "adversarial")).support == (0, 1)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda X, y: 2 * y, "query must have values in [−1, 1]; got 2.0. Remedy: divide it by its largest absolute value."),
        (lambda X, y: np.nan * y, "query must have values in [−1, 1]; got nan. Remedy: divide it by its largest absolute value."),
        (lambda X, y: X, "query must give 8 numbers for 8 examples; got shape (8, 3), dtype int8. Remedy: return one per row."),
    ],
)  # fmt: skip
def test_invalid_queries_are_refused_and_not_counted(query, message):
    oracle = SQOracle(Parity(3, 2), 0.1)
    with pytest.raises(ValueError) as error:
        oracle.query(query)
    assert str(error.value) == message and oracle.queries == 0


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="answers must be one of 'honest', 'adversarial'; got 'kind'."):
        SQOracle(Parity(3, 2), 0.1, "kind")
    with pytest.raises(ValueError, match=r"tolerance must be a finite number in \[0, 1\]; got 2."):
        SQOracle(Parity(3, 2), 2)
    with pytest.raises(ValueError, match="strategy must be one of 'random', 'families'; got 'best'."):
        learn_parity(SQOracle(Parity(3, 2), 0.1), "best")
    with pytest.raises(
        ValueError, match="the number of inputs must be an integer of at least 1 and at most 16; got 17."
    ):
        SQOracle(Parity(17, 2), 0.1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.1, 0.3])
@pytest.mark.parametrize("strategy", ["random", "families"])
def test_parities_are_found_whatever_the_answers(mode, tolerance, strategy):
    for support in ([3], [0, 1, 4, 6], [0, 1, 2, 3, 4, 5, 6]):
        problem = Parity(7, support=support)
        oracle = SQOracle(problem, tolerance, mode)
        found = learn_parity(oracle, strategy)
        assert sorted(found.support) == support and found.certain
        assert found.queries == oracle.queries <= 2**7


@pytest.mark.parametrize("tolerance", [0.2, 0.1, 0.05])
def test_families_need_about_sixteen_times_the_bound(tolerance):
    n = 8
    worst = max(
        learn_parity(SQOracle(Parity(n, support=s), tolerance, "adversarial"), "families").queries
        for s in ([7], list(range(8)), [0, 5], [2, 3, 6])
    )
    assert worst <= 16 * theory.parity_queries(n, tolerance) + 2 * n
    assert worst < 2 ** (n - 1)


@pytest.mark.parametrize("strategy", ["random", "families"])
@pytest.mark.parametrize("tolerance", [0.45, 0.2])
def test_adversarial_answers_defeat_learners_below_the_bound(strategy, tolerance):
    # Over all 2^n targets, q queries can teach at most q/τ² + 1/c² of them (Theorem 14 with its constant).
    n = 6
    queries = math.floor(theory.parity_queries_explicit(n, tolerance) / 2)
    assert queries >= 1
    # A learner that stops at q without an answer guesses one set, the same for all targets it has not found.
    learned = 1
    for index in range(1, 2**n):
        support = [j for j in range(n) if index >> j & 1]
        found = learn_parity(SQOracle(Parity(n, support=support), tolerance, "adversarial"), strategy)
        learned += found.queries <= queries and sorted(found.support) == support
    assert learned / 2**n <= theory.parity_success_explicit(n, tolerance, queries)
    assert learned < 0.75 * 2**n
