"""The statistical query oracle and its learners, and Theorem 14 of sparse-activations at small sizes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire.fourier import spectrum
from fewfire.learners.statistical_queries import SQOracle, learn_low_degree, learn_parity
from fewfire.networks import construct
from fewfire.problems import CorrelatedParity, Junta, NetworkTarget, Parity
from fewfire.theory import sparse_activations as theory

MODES = ("honest", "random", "adversarial")


def correlation(members):
    return lambda X, y: y * X[:, list(members)].prod(axis=1)


def random_query(seed, n):
    """Any function of (x, y) with values in [−1, 1]."""
    table = np.random.default_rng(seed).uniform(-1, 1, (2, 2**n))
    return lambda X, y: table[(np.asarray(y) > 0).astype(int), (X < 0) @ (1 << np.arange(n))]


@given(st.integers(0, 2**32), st.sampled_from(MODES), st.floats(0, 1), st.integers(0, 100))
def test_every_answer_is_within_the_tolerance(seed, mode, tolerance, oracle_seed):
    problem = Parity(5, support=[0, 2, 3])
    phi = random_query(seed, 5)
    X = cube(5)
    truth = float(np.mean(phi(X, problem.target(X))))
    oracle = SQOracle(problem, tolerance, mode, oracle_seed)
    for _ in range(3):
        assert abs(oracle.query(phi) - truth) <= tolerance + 1e-12
    assert oracle.queries == 3
    if mode == "honest":
        assert oracle.query(phi) == pytest.approx(truth, abs=1e-12)


def test_random_answers_fill_the_tolerance_and_repeat_with_the_seed():
    def answers(seed):
        oracle = SQOracle(Parity(4, 2), 0.25, "random", seed)
        return [oracle.query(correlation([0, 1])) for _ in range(400)]

    first = answers(7)
    assert first == answers(7) and first != answers(8)
    shifts = (np.array(first) - 1) / 0.25
    assert np.abs(shifts).max() <= 1 and abs(shifts.mean()) < 4 / math.sqrt(3 * 400)
    assert shifts.var() == pytest.approx(1 / 3, abs=0.06)


def test_adversarial_answers_tell_least():
    oracle = SQOracle(Parity(6, support=[1, 4]), 0.3, "adversarial")
    assert oracle.query(correlation([1, 4])) == pytest.approx(0.7)
    assert oracle.query(correlation([1])) == 0.0
    assert oracle.query(lambda X, y: 0.25 * (X[:, 1] * X[:, 4] * y)) == 0.0  # 0.25 ≤ τ is hidden
    assert oracle.query(lambda X, y: np.full(len(y), 0.5)) == pytest.approx(0.5)  # says nothing of labels: honest
    assert SQOracle(Parity(6, 2), 1.0, "adversarial").query(correlation([0, 1])) == 0.0


def test_label_noise_shrinks_correlations():
    oracle = SQOracle(Parity(5, 2, noise=0.1), 0.0)
    assert oracle.exact and oracle.expectation_error == 0.0
    assert oracle.query(correlation([0, 1])) == pytest.approx(0.8)
    assert learn_parity(SQOracle(Parity(5, 2, noise=0.1), 0.3, "adversarial")).support == (0, 1)


def test_larger_cubes_are_sampled_and_say_so():
    oracle = SQOracle(Parity(20, 2), 0.01, examples=50_000)
    assert not oracle.exact
    assert oracle.expectation_error == pytest.approx(math.sqrt(2 * math.log(2e6) / 50_000))
    for members, truth in (([0, 1], 1.0), ([2], 0.0), ([0], 0.0), ([3, 7, 9], 0.0)):
        assert abs(oracle.query(correlation(members)) - truth) <= oracle.expectation_error
    found = learn_parity(oracle, "exhaustive", max_size=2)
    assert found.certain and found.support == (0, 1) and found.queries == 22


def test_real_labels_with_noise_are_sampled():
    target = NetworkTarget(construct.dense_weights(1, 3, seed=0), noise=0.1)
    oracle = SQOracle(target, 0.0, "adversarial", examples=4096)
    assert not oracle.exact
    assert abs(oracle.query(lambda X, y: np.clip(y / 4, -1, 1))) <= 1


def test_other_distributions_must_be_named():
    problem = CorrelatedParity(9, 3)
    with pytest.raises(
        ValueError,
        match='problem must have uniform inputs here; got a mean or correlation of 0.5.* Remedy: pass distribution="drawn".',
    ):
        SQOracle(problem, 0.1)
    oracle = SQOracle(problem, 0.1, distribution="drawn")
    assert not oracle.exact
    assert oracle.query(correlation([0])) == pytest.approx(0.5, abs=oracle.expectation_error)
    assert {term for term, _ in learn_low_degree(oracle, 1).terms} == {(0,), (1,), (2,)}


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
    with pytest.raises(ValueError, match="answers must be one of 'honest', 'random', 'adversarial'; got 'kind'."):
        SQOracle(Parity(3, 2), 0.1, "kind")
    with pytest.raises(ValueError, match=r"tolerance must be a finite number in \[0, 1\]; got 2."):
        SQOracle(Parity(3, 2), 2)
    with pytest.raises(ValueError, match="strategy must be one of 'exhaustive', 'random', 'families'; got 'best'."):
        learn_parity(SQOracle(Parity(3, 2), 0.1), "best")
    with pytest.raises(ValueError, match="degree must be an integer of at least 0 and at most 3; got 4."):
        learn_low_degree(SQOracle(Parity(3, 2), 0.1), 4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.1, 0.3])
@pytest.mark.parametrize("strategy", ["exhaustive", "random", "families"])
def test_parities_are_found_whatever_the_answers(mode, tolerance, strategy):
    for support in ([3], [0, 1, 4, 6], [0, 1, 2, 3, 4, 5, 6]):
        problem = Parity(7, support=support)
        oracle = SQOracle(problem, tolerance, mode)
        found = learn_parity(oracle, strategy)
        assert sorted(found.support) == support and found.certain
        assert found.queries == oracle.queries <= 2**7
        assert np.array_equal(found.predict(cube(7)), problem.target(cube(7)))


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
    learned = 0
    for index in range(1, 2**n):
        support = [j for j in range(n) if index >> j & 1]
        found = learn_parity(SQOracle(Parity(n, support=support), tolerance, "adversarial"), strategy, budget=queries)
        assert found.queries <= queries
        learned += sorted(found.support) == support
    assert learned / 2**n <= theory.parity_success_explicit(n, tolerance, queries)
    assert learned < 0.75 * 2**n


def test_a_budget_of_nothing_asks_nothing():
    for strategy in ("random", "families"):
        found = learn_parity(SQOracle(Parity(4, 2), 0.1), strategy, budget=0)
        assert (found.support, found.certain, found.queries) == ((), False, 0)


@pytest.mark.parametrize("mode", MODES)
def test_low_degree_coefficients_are_within_the_tolerance(mode):
    problem = Junta(6, [1, 2, 5], np.array([1, 1, -1, 1, -1, -1, 1, 1]))
    truth = spectrum(problem)
    oracle = SQOracle(problem, 0.05, mode, seed=3)
    found = learn_low_degree(oracle, 3)
    assert found.queries == oracle.queries == 42
    given = dict(found.terms)
    for members, coefficient in found.terms:
        assert abs(coefficient - truth.coefficient(members)) <= 0.05 + 1e-12
    for members in [(1,), (2,), (5,), (1, 2), (1, 2, 5), (0,), (0, 3, 4)]:
        assert abs(given.get(members, 0.0) - truth.coefficient(members)) <= 2 * 0.05 + 1e-9
    sizes = [abs(value) for _, value in found.terms]
    assert sizes == sorted(sizes, reverse=True)


def test_low_degree_terms_left_out_are_within_twice_the_tolerance():
    """Coefficients of 1/4 and answers that may be off by 0.15: the least telling ones are 0.1, not above 0.15."""
    problem = Junta(4, [0, 1, 2], np.array([1, 1, 1, 1, 1, 1, 1, -1]))  # AND: six coefficients of ±1/4, one of 3/4
    found = learn_low_degree(SQOracle(problem, 0.15, "adversarial"), 2)
    assert [members for members, _ in found.terms] == [()]
    assert 0.15 < max(abs(c) for members, c in spectrum(problem).largest(8) if members) == 0.25 <= 2 * 0.15


def test_low_degree_learns_a_network_to_its_tail():
    net = construct.dense_weights(2, 6, seed=4)
    truth = spectrum(net)
    scale = float(np.abs(net(cube(8))).max())
    found = learn_low_degree(SQOracle(NetworkTarget(net), 0.001, "random"), 3, scale=scale)
    error = np.mean((found.predict(cube(8)) - net(cube(8))) ** 2)
    assert truth.tail(3) - 1e-9 <= error <= truth.tail(3) + 93 * (2 * 0.001 * scale) ** 2
