"""Juntas: tables read in cube order, the coordinates they really use, random ones."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire import fourier
from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.problems import HalfSpace, Junta, NamedJunta, Parity

SIGN = st.sampled_from((1, -1))


@st.composite
def juntas(draw):
    n = draw(st.integers(1, 7))
    support = draw(st.lists(st.integers(0, n - 1), max_size=min(n, 4), unique=True))
    table = draw(st.lists(SIGN, min_size=2 ** len(support), max_size=2 ** len(support)))
    return Junta(n, support, table)


def value(junta, row):
    return junta.table[sum(2**j for j, i in enumerate(junta.support) if row[i] == -1)]


@given(junta=juntas())
def test_target_on_the_whole_cube(junta):
    rows = list(product((1, -1), repeat=junta.n))
    target = junta.target(rows)
    assert target.tolist() == [value(junta, row) for row in rows] and target.dtype == np.int8


@given(junta=juntas())
def test_depends_on_is_found_by_flipping_every_input(junta):
    used = set()
    for row in product((1, -1), repeat=junta.n):
        for i in range(junta.n):
            flipped = (*row[:i], -row[i], *row[i + 1 :])
            if value(junta, row) != value(junta, flipped):
                used.add(i)
    assert junta.depends_on == tuple(sorted(used))


@given(junta=juntas())
def test_one_neuron_per_table_entry_computes_it(junta):
    # sparse-activations, Theorem 13: f(x) = Σ_j u_j relu(⟨w_j, x⟩ − p + 1), one neuron active.
    p = len(junta.support)
    rows = np.array(list(product((1, -1), repeat=junta.n)))
    patterns = np.array([[-1 if i >> j & 1 else 1 for j in range(p)] for i in range(2**p)]).reshape(2**p, p)
    hidden = np.maximum(rows[:, list(junta.support)].reshape(len(rows), p) @ patterns.T - p + 1, 0)
    assert ((hidden > 0).sum(axis=1) == 1).all()
    assert (hidden @ np.array(junta.table) == junta.target(rows)).all()


def test_a_parity_is_a_junta():
    junta = Junta(6, (1, 3, 4), [(-1) ** i.bit_count() for i in range(8)])
    rows = list(product((1, -1), repeat=6))
    assert junta.target(rows).tolist() == Parity(6, support=(1, 3, 4)).target(rows).tolist()
    assert junta.depends_on == (1, 3, 4)


def test_the_order_of_the_support_is_the_order_of_the_bits():
    first, second = Junta(3, (0, 2), (1, -1, 1, 1)), Junta(3, (2, 0), (1, -1, 1, 1))
    assert first.target([[-1, 1, 1]]).tolist() == [-1] and second.target([[-1, 1, 1]]).tolist() == [1]
    assert first != second


def test_random_is_fixed_by_the_seed_and_covers_everything():
    assert Junta.random(10, 3, 5) == Junta.random(10, 3, Stream(5, "target"))
    assert len({Junta.random(10, 3, seed) for seed in range(50)}) == 50
    rows = 400
    juntas = [Junta.random(6, 2, seed, noise=0.25) for seed in range(rows)]
    assert all(j.support == tuple(sorted(j.support)) and j.noise == 0.25 for j in juntas)
    share = np.mean([i in j.support for j in juntas for i in range(6)])
    assert share == pytest.approx(1 / 3)
    for i in range(6):
        assert abs(np.mean([i in j.support for j in juntas]) - 1 / 3) < 5 * np.sqrt(2 / 9 / rows)
    assert np.abs(np.mean([j.table for j in juntas], axis=0)).max() < 5 / np.sqrt(rows)
    # A table of 2 bits ignores its first one with probability 2⁻².
    ignored = np.mean([j.support[0] not in j.depends_on for j in juntas])
    assert abs(ignored - 0.25) < 5 * np.sqrt(0.25 * 0.75 / rows)


def test_constants_and_large_tables():
    assert Junta(3, (), (-1,)).target(np.ones((4, 3))).tolist() == [-1] * 4
    assert Junta.random(3, 0).support == ()
    big = Junta.random(30, 12, 1)
    assert repr(big) == f"Junta(n=30, support={big.support}, table=<4096 values>, noise=0.0)"
    assert big.depends_on == big.support


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4, (0, 1), (1, 1, 1)), r"^table must hold 4 values, one per setting of 2 coordinates; got shape \(3,\)"),
        ((4, (0,), ((1, -1),)), r"^table must hold 2 values, one per setting of 1 coordinates; got shape \(1, 2\)"),
        ((4, (0,), (1, 0)), r"^table may hold only \+1 and −1; got 0\."),
        ((4, (0,), (1, float("nan"))), r"^table may hold only \+1 and −1; got NaN"),
        ((4, (0,), ("a", "b")), "^table must hold numbers; got dtype <U1"),
        ((4, (4,), (1, -1)), r"^support\[0\] must be an integer of at least 0 and at most 3; got 4"),
        ((4, (1, 1), (1, 1, 1, 1)), "^support must hold distinct coordinates"),
        ((4, 2, (1, 1)), "^support must be a sequence of integers; got 2"),
        ((0, (), (1,)), "^n must be an integer of at least 1; got 0"),
        ((30, range(21), (1,)), "^support must hold at most 20 coordinates; got 21"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        Junta(*arguments)


def test_bad_random_arguments():
    with pytest.raises(InvalidArgument, match=r"^p must be an integer of at least 0 and at most 3; got 4"):
        Junta.random(3, 4)
    with pytest.raises(InvalidArgument, match=r"^p must be an integer of at least 0 and at most 20; got 21"):
        Junta.random(40, 21)


def spectrum_by_definition(f, n):
    """f̂(S) = E f·χ_S over the whole cube, at the number whose bits are S."""
    rows = list(product((1, -1), repeat=n))
    sets = [[j for j in range(n) if i >> j & 1] for i in range(2**n)]
    return [np.mean([f(x) * np.prod([x[j] for j in S]) for x in rows]) for S in sets]


BY_NAME = {
    "and": lambda bits: all(b == -1 for b in bits),
    "or": lambda bits: any(b == -1 for b in bits),
    "majority": lambda bits: sum(bits) < 0,
}


@pytest.mark.parametrize("function", list(BY_NAME))
@pytest.mark.parametrize("support", [(0, 1, 2), (1, 4, 3), (2,)])
def test_named_juntas_by_definition(function, support):
    problem = NamedJunta(5, support=support, function=function)
    expected = spectrum_by_definition(lambda x: -1 if BY_NAME[function]([x[i] for i in support]) else 1, 5)
    assert np.abs(fourier.spectrum(problem).coefficients - expected).max() < 1e-12


@given(k=st.integers(1, 5), seed=st.integers(0, 2**63 - 1))
def test_a_random_junta_depends_on_all_of_its_inputs_and_on_no_other(k, seed):
    problem = NamedJunta(7, k, seed=seed)
    influences = fourier.spectrum(problem).influences()
    assert (influences[:k] > 1e-9).all() and (influences[k:] < 1e-9).all()


def test_random_juntas_are_uniform():
    # Of the 16 tables of two bits, 10 depend on both: each with probability 1/10.
    seen = [tuple(NamedJunta(2, 2, seed=seed).target(list(product((1, -1), repeat=2))).tolist()) for seed in range(400)]
    assert len(set(seen)) == 10
    assert max(seen.count(table) for table in set(seen)) < 40 + 5 * 6


def test_an_odd_majority_is_a_half_space():
    rows = list(product((1, -1), repeat=6))
    majority = NamedJunta(6, 5, function="majority")
    assert majority.target(rows).tolist() == HalfSpace(6, [1] * 5).target(rows).tolist()


@given(weights=st.lists(st.integers(-4, 4), min_size=1, max_size=5), threshold=st.integers(-6, 6))
def test_half_spaces_by_definition(weights, threshold):
    n = 5
    expected = spectrum_by_definition(
        lambda x: 1 if sum(w * x[i] for i, w in enumerate(weights)) > threshold else -1, n
    )
    problem = HalfSpace(n, weights, threshold)
    assert np.abs(fourier.spectrum(problem).coefficients - expected).max() < 1e-12


def test_sums_of_large_weights_are_exact():
    # In float64 2⁵² + 1 terms would do; in float32 or int32 these would not.
    problem = HalfSpace(3, [2**31, 2**31, 1], 2**32)
    assert problem.target([[1, 1, 1], [1, 1, -1]]).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (lambda: NamedJunta(5, 4, function="majority"), "^k must be odd, so that there are no ties; got 4"),
        (lambda: NamedJunta(30, 21), "^k must be an integer of at least 1 and at most 20; got 21. Remedy: name a"),
        (lambda: NamedJunta(5, 2, function="nand"), "^function must be one of 'random', 'and', 'or', 'majority'"),
        (lambda: NamedJunta(5, 2, seed=-1), "^seed must be an integer of at least 0"),
        (lambda: HalfSpace(2, [1, 1, 1]), r"^weights must be 1 to n = 2 integers; got \(1, 1, 1\)"),
        (lambda: HalfSpace(2, []), "^weights must be 1 to n = 2 integers"),
        (lambda: HalfSpace(2, [0.5]), r"^weights\[0\] must be an integer"),
        (lambda: HalfSpace(2, [1], 0.5), "^threshold must be an integer"),
        (lambda: HalfSpace(2, 1), "^weights must be a sequence of integers; got 1"),
    ],
)
def test_bad_named_juntas_and_half_spaces(problem, message):
    with pytest.raises(InvalidArgument, match=message):
        problem()
