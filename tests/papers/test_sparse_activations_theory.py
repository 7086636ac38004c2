"""sparse-activations: the bounds hold on constructed members, obey their laws, and survive huge arguments."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire.fourier import spectrum
from fewfire.networks import TwoLayer, check_sparsity, construct
from fewfire.papers import sparse_activations as sa

sizes = st.integers(1, 64)
scales = st.floats(0.01, 100)
parameters = st.tuples(sizes, st.integers(2, 64), scales, scales)


def members():
    table = np.random.default_rng(0).standard_normal(16)
    yield 1, construct.junta(7, [0, 3, 4, 6], table)
    yield 1, construct.indexing(2)
    yield 1, construct.dense_weights(2, 6, seed=1)
    for k in (1, 2, 3):
        for kind in ("dense", "junta"):
            yield k, construct.random_member(9, 12, k, 5, kind)
    for p, k in ((2, 1), (3, 2), (4, 3)):
        yield k, doubled_parity(p, k)


def doubled_parity(p, k):
    patterns = cube(p).astype(float)
    return TwoLayer(np.tile(patterns, (k, 1)), np.full(k * 2**p, 2.0 - p), np.tile(patterns.prod(axis=1), k))


@pytest.mark.parametrize(("k", "net"), list(members()))
def test_bounds_hold_on_members(k, net):
    assert check_sparsity(net).max_active <= k
    (W, B), n, s = net.norms(), net.inputs, net.width
    picture = spectrum(net)
    average = picture.average_sensitivity()
    assert average <= sa.average_sensitivity_sharp(k, W) * (1 + 1e-12)
    assert average <= 4 / math.log(2) * sa.average_sensitivity(n, s, k, W, B)
    for rho in (0.0, 0.3, 0.9, 0.999):
        noise = picture.noise_sensitivity(rho)
        assert noise <= sa.noise_sensitivity_sharp(rho, k, W) * (1 + 1e-12)
        assert noise <= 8 * sa.noise_sensitivity(rho, n, s, k, W, B)
    for rho in (0.2, 0.9):
        for d in range(1, n + 1):
            assert picture.tail(d) <= sa.tail(picture.noise_sensitivity(rho), rho, d) + 1e-12
    for rho in (-1.0, -0.4):
        assert picture.noise_sensitivity(rho) <= sa.noise_sensitivity_sharp(rho, k, W) * (1 + 1e-12)
    for epsilon in (0.01, 0.3, 2.0):
        assert picture.degree_for(epsilon) <= sa.degree_sharp(k, W, epsilon)
    assert np.abs(net(cube(n))).max() <= sa.output_bound(n, k, W, B)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32))
def test_the_sharp_sensitivity_needs_no_structure(n, s, seed):
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((s, n)) * (rng.random((s, n)) < 0.7)
    net = TwoLayer(hidden, rng.standard_normal(s) - 1, rng.standard_normal(s))
    k = max(1, check_sparsity(net).max_active)
    assert spectrum(net).average_sensitivity() <= sa.average_sensitivity_sharp(k, net.norms().W) * (1 + 1e-12)


@pytest.mark.parametrize(("p", "k"), [(2, 1), (3, 1), (5, 1), (4, 3)])
def test_the_sharp_sensitivity_is_attained_by_doubled_parities(p, k):
    net = doubled_parity(p, k)
    assert check_sparsity(net).max_active == k
    assert np.array_equal(net(cube(p)), 2 * k * cube(p).prod(axis=1))
    assert spectrum(net).average_sensitivity() == pytest.approx(4 * k**2 * p)
    assert sa.average_sensitivity_sharp(k, net.norms().W) == pytest.approx(4 * k**2 * p)


@pytest.mark.parametrize("n", [1, 4, 9])
def test_lemma_6_holds_with_constant_one_over_root_two(n):
    rng = np.random.default_rng(n)
    X = cube(n).astype(float)
    for weights in (np.ones(n), rng.standard_normal(n), rng.exponential(size=n) ** 3):
        for threshold in np.quantile(X @ weights, [0.0, 0.1, 0.5, 0.9, 0.99]):
            g = (X @ weights <= threshold).astype(float)
            bound = math.sqrt(0.5) * sa.halfspace_sensitivity(n, g.mean())
            assert spectrum(g).average_sensitivity() <= bound + 1e-12
    assert sa.halfspace_sensitivity(n, 0.0) == 0.0 == sa.halfspace_sensitivity(n, 1.0)


def test_values_by_hand():
    assert sa.average_sensitivity(4, 3, 2, 1.5, 0.5) == pytest.approx(
        16 * 2.25 * 2 * math.log(12) + 8 * 0.25 * math.sqrt(math.log(3))
    )
    assert sa.noise_sensitivity(0.75, 4, 3, 2, 1.5, 0.5) == pytest.approx(
        0.5 * (16 * 2.25 * math.log(48) ** 2 + 8 * 0.25 * math.sqrt(math.log(3)))
    )
    assert sa.degree(4, 3, 2, 1.5, 0.5, 0.1) == math.ceil(
        (256 * 1.5**4 * math.log(12) ** 4 + 64 * 0.5**4 * math.log(3)) / 0.01
    )
    assert sa.degree_sharp(2, 1.5, 0.5) == 71  # 4·4·2.25 = 36; 36/72 = 0.5
    assert sa.output_bound(9, 2, 1.5, 0.5) == 10.0
    assert sa.low_degree_samples(10, 2, 3.0, 0.1, math.exp(-2)) == pytest.approx(100 * 9 * 2 / 0.1)
    assert sa.samples(9, 3, 2, 1.5, 0.5, 0.1, math.exp(-2), d=2) == pytest.approx(81 * 100 * 2 / 0.1)
    assert sa.parity_queries(10, 0.25) == 64.0
    assert sa.parity_queries_explicit(10, 0.25) == pytest.approx((1024 - 9) / 16)
    assert sa.parity_success_explicit(10, 0.25, 7) == pytest.approx((7 * 16 + 9) / 1024)
    assert sa.rademacher(9, 5, 1, 2.0, 1.0, 100) == pytest.approx(7 * math.sqrt(45 * math.log(400) / 100))
    assert sa.rademacher(9, 5, 2, 2.0, 1.0, 100) == pytest.approx(7 * math.sqrt(90 * math.log(800) / 100))
    assert sa.rademacher_conjectured(9, 8, 2, 2.0, 1.0, 100) == pytest.approx(2.8)
    assert sa.rademacher_classical(9, 8, 2.0, 1.0, 100) == pytest.approx(5.6)
    assert sa.general_samples(9, 5, 2, 2.0, 1.0, 0.1, math.exp(-3)) == pytest.approx(
        (49 * 90 * math.log(80) + 3) / 0.01
    )
    assert sa.tail(0.1, 0.5, 2) == pytest.approx(0.2 / 0.75) and sa.tail(0.1, 0.0, 2) == 0.2


def test_juntas_fit_their_class():
    for p in (1, 2, 4):
        needed = sa.junta_class(p)
        table = np.where(np.arange(2**p) % 3 == 0, 1, -1)
        net = construct.junta(6, range(p), table)
        assert (net.width, *net.norms()) == (needed.s, pytest.approx(needed.W), pytest.approx(needed.B))
        assert check_sparsity(net).max_active == 1
        assert sa.junta_size(needed.s) == p == sa.junta_size(2 * needed.s - 1)
    assert sa.log10_junta_time(100, 8) == pytest.approx(6.0)


def test_rademacher_samples_are_the_smallest_that_do():
    arguments = (4, 3, 2, 0.5, 0.25)

    def excess(m):
        complexity = 1.25 * math.sqrt(24 * math.log(math.e + 2 * m * 2.25) / m)
        return 2 * 1.25 * complexity + math.sqrt(math.log(20) / m) - 0.5

    m = int(sa.rademacher_samples(*arguments, 0.5, 0.05))
    assert excess(m) <= 0 < excess(m - 1)
    assert sa.rademacher_samples(*arguments, 1e-40, 0.05) == math.inf


def test_rademacher_explicit_counts_halfspace_cuts():
    # On a line, m points are cut off by halfspaces in 2m ways.
    assert sa.rademacher_explicit(1, 4, 1, 1.0, 0.0, 50) == pytest.approx(math.sqrt(8 * math.log(200) / 50))
    assert sa.rademacher_explicit(3, 40, 2, 1.0, 2.0, 1) == pytest.approx(2 * (math.sqrt(3) + 2))
    assert sa.rademacher_explicit(50, 4, 1, 1.0, 0.0, 10**6) > 0


@given(parameters, st.integers(1, 32), st.floats(1.0, 4.0))
def test_bounds_grow_with_the_class(values, k, factor):
    n, s, W, B = values
    k = min(k, s)

    def everything(n, s, k, W, B):
        return [
            sa.average_sensitivity(n, s, k, W, B),
            sa.average_sensitivity_sharp(k, W),
            sa.noise_sensitivity(0.5, n, s, k, W, B),
            sa.degree(n, s, k, W, B, 0.1),
            sa.degree_sharp(k, W, 0.1),
            sa.log10_samples(n, s, k, W, B, 0.1, 0.1),
            sa.general_samples(n, s, k, W, B, 0.1, 0.1),
            sa.rademacher(n, s, k, W, B, 100),
            sa.rademacher_explicit(n, s, k, W, B, 100),
            sa.rademacher_conjectured(n, s, k, W, B, 100),
            sa.rademacher_classical(n, s, W, B, 100),
        ]

    here = everything(n, s, k, W, B)
    larger = (n + 1, s, k, W, B), (n, s + 1, k, W, B), (n, s + 1, k + 1, W, B), (n, s, k, W * factor, B * factor)
    for there in larger:
        assert all(a <= b + 1e-9 * abs(b) for a, b in zip(here, everything(*there), strict=True))


@given(parameters, st.floats(0.001, 1), st.floats(0.001, 0.9), st.floats(1.001, 4))
def test_more_accuracy_costs_more(values, epsilon, delta, factor):
    n, s, W, B = values
    looser = min(0.99, delta * factor)
    for count in (sa.log10_samples, sa.general_samples, sa.rademacher_samples):
        assert count(n, s, 1, W, B, epsilon / factor, delta) >= count(n, s, 1, W, B, epsilon, delta)
        assert count(n, s, 1, W, B, epsilon, delta) >= count(n, s, 1, W, B, epsilon, looser)
    assert sa.degree_sharp(1, W, epsilon / factor) >= sa.degree_sharp(1, W, epsilon)
    assert sa.rademacher(n, s, 1, W, B, 400) <= sa.rademacher(n, s, 1, W, B, 100)


@given(st.integers(0, 2000), st.floats(0, 1), st.integers(0, 10**6))
def test_more_queries_learn_more(m, tolerance, queries):
    assert 0 <= sa.parity_queries_explicit(m, tolerance) <= sa.parity_queries(m, tolerance)
    if tolerance > 1e-3:
        few = sa.parity_success_explicit(m, tolerance, queries)
        assert 0 <= few <= sa.parity_success_explicit(m, tolerance, queries + 1) <= 1
        if few < 1:
            assert queries < sa.parity_queries_explicit(m, tolerance)


def test_huge_numbers_do_not_overflow():
    assert sa.log10_samples(100, 1000, 4, 10.0, 10.0, 0.01, 0.05) > 1e10
    assert sa.samples(100, 1000, 4, 10.0, 10.0, 0.01, 0.05) == math.inf
    assert sa.degree(10, 10, 5, 1e200, 1.0, 1e-300) == math.inf == sa.degree_sharp(5, 1e200, 1e-300)
    assert sa.log10_samples(10, 10, 5, 1e200, 1.0, 0.1, 0.1) == math.inf
    assert sa.average_sensitivity(10, 10, 5, 1e200, 1.0) == math.inf
    assert sa.general_samples(10, 10, 5, 1e200, 1.0, 0.1, 0.1) == math.inf
    assert sa.parity_queries(5000, 0.1) == math.inf == sa.parity_queries_explicit(5000, 0.1)
    assert sa.parity_queries(5000, 0.0) == 0.0 and sa.parity_success_explicit(5000, 0.1, 10**9) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sa.average_sensitivity(3, 2, 3, 1, 1), "k must be an integer of at least 1 and at most 2; got 3. Remedy: no more neurons can fire than there are."),
        (lambda: sa.average_sensitivity(3, 2, 1, -1, 1), "W must be a finite number in [0, inf); got -1."),
        (lambda: sa.degree(3, 2, 1, 1, 1, 0.0), "epsilon must be a finite number in (0, inf); got 0.0."),
        (lambda: sa.samples(3, 2, 1, 1, 1, 0.1, 1.0), "delta must be a finite number in (0, 1); got 1.0."),
        (lambda: sa.noise_sensitivity(-0.5, 3, 2, 1, 1, 1), "rho must be a finite number in [0, 1); got -0.5."),
        (lambda: sa.junta_class(0), "p must be an integer of at least 1; got 0."),
        (lambda: sa.parity_queries(3, 1.5), "tolerance must be a finite number in [0, 1]; got 1.5."),
        (lambda: sa.rademacher(1, 1, 1, 1, 0, 1, R=0.5), "k·m·(R + B) must be above 1 for the logarithm of the bound; got 0.5. Remedy: scale the inputs up."),
        (lambda: sa.general_samples(1, 1, 1, 1, 0, 2, 0.1), "epsilon must be below k(R + B) for the logarithm of the bound; got 2. Remedy: ask for a smaller epsilon."),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
