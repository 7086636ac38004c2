"""The cover of the monomials by subcubes, and both products on it: laws, the definition, every variant."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire import _extension, fourier
from fewfire._random import Stream
from fewfire.fourier._monomial_matrix import MonomialMatrix, reference_sums, reference_values
from fewfire.fourier._subcubes import MAX_TABLE_BITS, choose_groups, cover_of, product_cost


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


covers = st.integers(1, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(1, min(n, 5)), st.integers(-(-n // 8), n))
)


@settings(max_examples=60)
@given(covers)
def test_every_monomial_has_one_place_and_it_holds_its_members(shape):
    n, degree, groups = shape
    cover = cover_of(n, degree, groups)
    starts, order, places = cover.assignment
    assert sorted(order) == list(range(fourier.monomial_count(n, degree)))
    assert (starts[0], starts[-1]) == (0, len(order))
    sets = fourier.monomials(n, degree)
    for subcube, chosen in enumerate(cover.groups):
        assert list(chosen) == sorted(set(chosen))
        coordinates = [c for group in chosen for c in range(cover.bounds[group], cover.bounds[group + 1])]
        for position in range(starts[subcube], starts[subcube + 1]):
            members = [c for bit, c in enumerate(coordinates) if places[position] >> bit & 1]
            assert members == [c for c in sets[order[position]] if c >= 0]


@settings(max_examples=40)
@given(covers, st.integers(1, 70), st.integers(0, 2**32))
def test_patterns_hold_the_bits_of_each_group(shape, samples, seed):
    n, degree, groups = shape
    cover, signs = cover_of(n, degree, groups), sample(samples, n, seed)
    patterns = cover.patterns(signs)
    bits = [(patterns[g] >> b & 1) for g in range(groups) for b in range(cover.group_bits[g])]
    assert np.array_equal(1 - 2 * np.stack(bits, axis=1).astype(int), signs)


@settings(max_examples=40)
@given(st.integers(1, 15), st.integers(0, 6), st.integers(1, 1200), st.integers(0, 2**32))
def test_products_equal_the_reference(n, degree, samples, seed):
    degree = min(degree, n)
    signs = sample(samples, n, seed)
    matrix = MonomialMatrix(signs, degree, 2)
    coefficients, weights = Stream(seed, "c").normal(matrix.shape[1]), Stream(seed, "w").normal(samples)
    assert np.allclose(matrix.values(coefficients), reference_values(signs, degree, coefficients), atol=1e-9)
    assert np.allclose(matrix.sums(weights), reference_sums(signs, degree, weights), atol=1e-9)


@pytest.mark.skipif(_extension.load() is None, reason="needs the C++ part")
@pytest.mark.parametrize(
    ("n", "degree", "samples"), [(1, 1, 1), (70, 2, 600), (18, 17, 5), (40, 3, 513), (9, 9, 70000)]
)
def test_every_variant_and_thread_count_gives_the_same_bits(core, n, degree, samples):
    signs = sample(samples, n)
    coefficients = Stream(1, "c").normal(fourier.monomial_count(n, degree))
    weights = Stream(1, "w").normal(samples)
    results = []
    for isa in core.available_isas():
        core.set_isa(isa)
        for threads in (1, 2, 5):
            matrix = MonomialMatrix(signs, degree, threads)
            results.append((matrix.values(coefficients), matrix.sums(weights)))
    for values, sums in results[1:]:
        assert np.array_equal(values, results[0][0])
        assert np.array_equal(sums, results[0][1])


def test_long_samples_are_cut_into_ranges():
    """More samples than one task takes: the seam must not show."""
    signs = sample(2**18 + 700, 5)
    values = Stream(2, "c").normal(fourier.monomial_count(5, 2))
    fast = MonomialMatrix(signs, 2, 3).values(values)
    assert np.allclose(fast, reference_values(signs, 2, values))


def test_sums_are_the_empirical_coefficients():
    signs, labels = sample(2000, 12), Stream(3, "y").normal(2000)
    sums = MonomialMatrix(signs, 3, 2).sums(labels)
    assert np.allclose(sums / 2000, fourier.estimate(signs, labels, 3).values, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "degree"), [(40, 3), (100, 3), (200, 2), (30, 4), (8, 8), (1000, 1), (20, 16)])
def test_chosen_tables_stay_in_cache_and_cost_least(n, degree):
    for samples in (1, 1000, 10**6):
        groups = choose_groups(n, degree, samples)
        bits = np.sort(cover_of(n, degree, groups).group_bits)[::-1]
        assert bits[: min(degree, groups)].sum() <= max(MAX_TABLE_BITS, degree)
        costs = [product_cost(n, degree, samples, other) for other in range(-(-n // 8), n + 1)]
        assert product_cost(n, degree, samples, groups) == min(costs) < float("inf")


def test_a_lookup_stands_for_many_multiply_adds():
    """What makes the products fast, as a count: monomials over subcubes at the sizes the benchmark times."""
    for n, samples, least in [(40, 12_000, 80), (30, 50_000, 100), (100, 100_000, 100)]:
        subcubes = len(cover_of(n, 3, choose_groups(n, 3, samples)).groups)
        assert fourier.monomial_count(n, 3) / subcubes > least
