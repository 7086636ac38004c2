"""sublinear, section 4: sign and step polynomials, their error, degree and coefficients; the robust fit; complexities."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import poch
from scipy.stats import binom

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.papers import sublinear as sl
from fewfire.papers.sublinear.statements._robust_fit import sign_weights
from fewfire.problems import SphereSlice, gamma, separation

GRID = [(gap, error) for gap in (0.9, 0.5, 0.2, 0.05, 0.02) for error in (0.9, 0.3, 0.01, 1e-6)]


def monomials(series):
    """Exact coefficients of a Chebyshev series on [−√2, √2] with x·Σ d_j T_j(1 − x²): by Fractions, no rounding."""
    total = [Fraction(0)]
    previous, current = [Fraction(1)], [Fraction(1), Fraction(-1)]  # T_0, T_1 in y = x², u = 1 − y
    for j, weight in enumerate(series):
        term = previous if j == 0 else current
        size = max(len(total), len(term))
        total += [Fraction(0)] * (size - len(total))
        for i, value in enumerate(term):
            total[i] += Fraction(float(weight)) * value
        if j >= 1:
            doubled = [Fraction(0)] * (len(current) + 1)
            for i, value in enumerate(current):
                doubled[i] += 2 * value
                doubled[i + 1] -= 2 * value
            for i, value in enumerate(previous):
                doubled[i] -= value
            previous, current = current, doubled
    return total  # of x·y^i


@pytest.mark.parametrize(("gap", "error"), GRID)
def test_lemma_4_4_error_degree_and_coefficients(gap, error):
    p = sl.sign_polynomial(gap, error)
    x = np.linspace(gap, 1, 4001)
    assert np.abs(p(x) - 1).max() <= error
    np.testing.assert_allclose(p(-x), -p(x), rtol=0, atol=1e-9)
    assert p.degree <= p.degree_bound
    assert p.log2_size() <= 4 * p.degree_bound
    assert p.degree == p.series.degree()


@pytest.mark.parametrize(("gap", "error"), [(0.5, 0.1), (0.2, 0.01)])
def test_the_size_of_the_coefficients_is_exact(gap, error):
    p = sl.sign_polynomial(gap, error)
    exact = monomials(p.weights)
    assert all(value * (-1) ** i > 0 for i, value in enumerate(exact))  # one sign a degree: nothing cancels
    assert p.log2_size() == pytest.approx(math.log2(sum(map(abs, exact))), rel=1e-12)
    half = sum(abs(value) / Fraction(2) ** (2 * i + 1) for i, value in enumerate(exact))
    assert p.log2_size(0.5) == pytest.approx(math.log2(half), rel=1e-12)
    for x in (Fraction(1, 7), Fraction(3, 4), Fraction(1)):
        value = x * sum(coefficient * x ** (2 * i) for i, coefficient in enumerate(exact))
        assert float(p(float(x))) == pytest.approx(float(value), abs=1e-12)


@pytest.mark.parametrize("highest", [0, 1, 5, 40])
def test_lemma_3_19_is_an_incomplete_beta_function(highest):
    x = np.linspace(-1, 1, 101)
    total, factor = np.zeros_like(x), 1.0
    for i in range(highest + 1):
        factor *= (2 * i - 1) / (2 * i) if i else 1.0
        total += factor * (1 - x**2) ** i
    np.testing.assert_allclose(sl.power_sign_polynomial(x, highest), x * total, atol=1e-14)


@given(gap=st.floats(0.02, 0.99), error=st.floats(1e-8, 0.99))
def test_lemma_3_19_error(gap, error):
    k = sl.sign_powers(gap, error)
    worst = 1 - sl.power_sign_polynomial([gap], k)[0]  # p_k grows from gap to 1 = p_k(1)
    assert 0 <= worst <= error / 2
    assert sl.power_sign_polynomial([1.0], k)[0] == 1.0


@pytest.mark.parametrize(("power", "degree"), [(0, 0), (1, 1), (9, 4), (40, 12), (40, 40), (7, 20)])
def test_theorem_3_20_and_corollary_4_6(power, degree):
    u = np.linspace(-1, 1, 1001)
    p = sl.truncated_power(power, degree)
    off = np.abs(p(u) - u**power).max()
    left_out = 1 - sum(
        binom.pmf((power + j) // 2, power, 0.5) for j in range(-degree, degree + 1) if (power + j) % 2 == 0
    )
    assert off == pytest.approx(left_out, abs=1e-12)  # attained at u = 1
    assert off <= 2 * math.exp(-(degree**2) / (2 * max(power, 1))) + 1e-12
    coefficients = np.abs(p.convert(kind=Polynomial).coef)
    assert p.degree() == degree and coefficients.max() <= 4.0**degree


@pytest.mark.parametrize("k", [0, 1, 2, 5, 12, 30])
def test_proposition_4_5(k):
    """C_k is the Chebyshev polynomial; its coefficients are below 2^(2k), and even add up to (1 + √2)^k at most."""
    printed = [0] * (k + 1)
    for i in range(k // 2 + 1):
        for j in range(i + 1):
            printed[2 * j + k - 2 * i] += math.comb(k, 2 * i) * math.comb(i, j) * (-1) ** (i - j)
    np.testing.assert_allclose(printed, Chebyshev.basis(k).convert(kind=Polynomial).coef, rtol=1e-9)
    assert max(map(abs, printed)) <= 4**k
    assert sum(map(abs, printed)) <= (1 + math.sqrt(2)) ** k + 1e-6


@pytest.mark.parametrize("g", [0.01, 0.1, 0.2, 0.6, 1.5, 3.5])
@pytest.mark.parametrize("error", [0.4, 0.01, 1e-4])
def test_claim_4_3_error_degree_and_coefficients(g, error):
    rho = 0.2 if g < 3 else 0.0
    q = sl.step_polynomial(g, error, rho)
    low, high = q.bands
    assert high - low == pytest.approx(g / 2)
    assert np.abs(q(np.linspace(-1, low, 4001))).max() <= error
    assert np.abs(q(np.linspace(high, 1, 4001)) - 1).max() <= error
    assert q.degree <= sl.step_degree(g, error)
    assert q.log2_coefficients() <= 6 * sl.step_degree(g, error) + math.log2(1 / g)


def test_the_bound_on_the_coefficients_of_a_step():
    q = sl.step_polynomial(1.5, 0.05, 0.1)
    exact = monomials(q.sign.weights)
    odd = [Fraction(0)] * (2 * len(exact))
    odd[1::2] = exact
    total, shifted = [Fraction(0)] * len(odd), [Fraction(1)]  # ((z − c)/s)^i
    middle, scale = Fraction(q.middle), Fraction(q.scale)
    for coefficient in odd:
        for i, value in enumerate(shifted):
            total[i] += coefficient * value / 2
        moved = [Fraction(0), *shifted]
        for i, value in enumerate(shifted):
            moved[i] -= middle * value
        shifted = [value / scale for value in moved]
    total[0] += Fraction(1, 2)
    size = math.log2(sum(map(abs, total)))
    assert size <= q.log2_coefficients() <= size + 0.5 * q.degree


def test_small_gaps_are_refused_by_name():
    assert sl.step_is_buildable(0.001, 0.01) and not sl.step_is_buildable(1e-4, 0.01)
    text = "gamma must be larger: .* powers would be summed, and 1000000000 is the most for this error; got 0.0001"
    with pytest.raises(InvalidArgument, match=text):
        sl.step_polynomial(1e-4, 0.01)
    with pytest.raises(
        InvalidArgument, match="gap must keep .* at most 1000000000, .* got 1e-05. Remedy: take a wider gap"
    ):
        sl.sign_polynomial(1e-5, 0.01)
    with pytest.raises(InvalidArgument, match="gap must keep .* at most 2500, past which rounding"):
        sl.sign_polynomial(0.03, 1e-12)


@pytest.mark.parametrize("highest", [0, 1, 2, 7, 40, 301, 2000])
def test_weights_are_those_of_a_random_walk(highest):
    """d_j = Σ_i c_i Pr[|X_i| = j], followed step by step."""
    chance, total, factor = np.zeros(highest + 2), np.zeros(highest + 2), 1.0
    chance[0] = total[0] = 1.0  # Pr[X_i = j], j ≥ 0
    for i in range(1, highest + 1):
        factor *= (2 * i - 1) / (2 * i)
        chance = np.concatenate([[chance[1]], (chance[:-2] + chance[2:]) / 2, [chance[-2] / 2]])
        total += factor * chance
    total[1:] *= 2
    weights = sign_weights(highest)
    np.testing.assert_allclose(weights, total[: len(weights)], rtol=0, atol=1e-16 * (highest + 10))
    assert total[len(weights) :].sum() < 1e-15


@pytest.mark.parametrize("highest", [999, 10**5, 10**7])
def test_weights_of_many_powers_add_up(highest):
    """p_k(1) = 1 and p_k′(0) = Σ c_i = (2k + 1)·C(2k, k)/4^k = 2·Γ(k + 3/2)/(√π·Γ(k + 1))."""
    weights = sign_weights(highest)
    assert (weights[::2] * (-1.0) ** np.arange(len(weights[::2]))).sum() == pytest.approx(1.0, abs=1e-16 * highest)
    slope = 2 / math.sqrt(math.pi) * poch(highest + 1, 0.5)
    assert weights.sum() == pytest.approx(slope, rel=1e-8)
    assert (weights[: len(weights) // 2] > 0).all()


def test_a_degree_in_the_ten_thousands():
    p = sl.sign_polynomial(0.001, 0.001)
    assert 20_000 < p.degree <= p.degree_bound
    x = np.concatenate([np.linspace(0.001, 0.01, 50), np.linspace(0.01, 1, 50)])
    assert np.abs(p(x) - 1).max() <= 0.001


# ── the robust fit ──


def neighbours(X, rho, count, seed):
    """Points of the slice at distance rho of each row, `count` per row, of shape (rows, count, d)."""
    flat = X[:, None, :-1]
    direction = Stream(seed, "moves").normal((len(X), count, X.shape[1] - 1))
    direction -= (direction * flat).sum(axis=2, keepdims=True) * flat / 0.75
    direction *= math.sqrt(0.75) / np.linalg.norm(direction, axis=2, keepdims=True)
    angle = 2 * math.asin(rho / math.sqrt(3))
    return np.concatenate(
        [math.cos(angle) * flat + math.sin(angle) * direction, np.full((len(X), count, 1), 0.5)], axis=2
    )


@pytest.mark.parametrize(
    ("n", "d", "distance", "rho", "epsilon"), [(8, 6, 0.7, 0.08, 0.3), (20, 12, 0.8, 0.3, 0.05), (1, 3, 0.5, 0.1, 0.9)]
)
def test_lemma_4_2_fits_within_a_third_of_epsilon(n, d, distance, rho, epsilon):
    X, y = SphereSlice(n, d, distance).sample(seed=1)
    X = X.astype(np.float64)
    g = min(gamma(X, rho), 1.0)
    target = sl.robust_target(X, y, g, rho, epsilon)
    assert target.step.degree <= sl.robust_degree(n, g, epsilon) == pytest.approx(24 / g * math.log(48 * n / epsilon))
    moved = neighbours(X, rho, 50, 2)
    worst = target.fit_error(moved.reshape(-1, d), np.repeat(y, 50))
    assert worst <= epsilon / 3
    assert target.fit_error(X, y) <= epsilon / 3
    assert n == 1 or target.fit_error(X, -y.astype(float)) > 2 - epsilon


def test_real_labels_are_fitted_too():
    X, _ = SphereSlice(6, 5, 0.8).sample(seed=4)
    y = np.linspace(-1, 1, 6)
    assert sl.robust_target(X, y, gamma(X, 0.1), 0.1, 0.2).fit_error(X, y) <= 0.2 / 3


def test_points_too_close_are_not_fitted():
    """Two points inside one ball with opposite labels: no function fits both, and f* does not."""
    X = np.array([[math.sqrt(0.75), 0.0, 0.5], [math.sqrt(0.75) * math.cos(0.1), math.sqrt(0.75) * math.sin(0.1), 0.5]])
    assert sl.robust_target(X, [1, -1], 0.5, 0.1, 0.1).fit_error(X, [1, -1]) > 0.5


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([[1.0, 0.0]], [1], 4.0, 0.0, 0.1), "gamma must be a finite number in (0, 4); got 4.0"),
        (([[2.0, 0.0]], [1], 0.5, 0.0, 0.1), "points must have norm 1 (to 1e-5); got a norm off by 1. Remedy: divide"),
        (([[1.0, 0.0]], [2], 0.5, 0.0, 0.1), "labels must lie in [−1, 1]; got 2.0. Remedy: scale them"),
        (([[1.0, 0.0]], [1, 1], 0.5, 0.0, 0.1), "labels must be a vector of 1 labels"),
        (([[1.0, 0.0]], [1], 3.999, 0.1, 0.1), "gamma must be below 4 − rho² = 3.99; got 3.999"),
        (([[1.0, 0.0]], [1], 0.5, -0.1, 0.1), "rho must be a finite number in [0, inf); got -0.1"),
        (([[1.0, 0.0]], [1], 0.5, 0.1, 1.0), "epsilon must be a finite number in (0, 1); got 1.0"),
    ],
)
def test_bad_targets_are_refused(arguments, match, refused):
    refused(match, sl.robust_target, *arguments)


# ── separability ──


@given(distance=st.floats(0.01, 1.7), share=st.floats(0.001, 1.0))
def test_the_bands_end_where_the_largest_radius_lets_them(distance, share):
    g = share * distance**2
    rho = (distance - g / distance) / 2  # γ = ε(ε − 2ρ)
    low, high = sl.inner_product_bands(g, max(rho, 0.0))
    assert low == pytest.approx(1 - (distance - rho) ** 2 / 2, abs=1e-9)
    assert high - low == pytest.approx(g / 2, abs=1e-9)


def test_the_largest_radius_of_a_set():
    X, _ = SphereSlice(10, 6, 0.7).sample(seed=0)
    rho = (separation(X) - 0.3 / separation(X)) / 2
    assert gamma(X, rho + 1e-6) < 0.3 <= gamma(X, rho - 1e-9)


# ── complexities ──


def test_complexities_of_a_small_polynomial():
    assert sl.complexity([3.0, -2.0, 1.0], 2.0) == pytest.approx(2 * (3 + 2 * 2**1.75 + 3**1.75))
    log = math.log(10)
    expected = 2 * 3 + 5 * (1 + math.sqrt(log)) * 2 + 25 * (1 + log / 2)
    assert sl.complexity_at([3.0, -2.0, 1.0], 0.1, 5.0) == pytest.approx(expected)


def test_complexity_bounds_are_those_of_the_largest_polynomial_allowed():
    n, g, epsilon = 1, 3.9, 0.99
    degree = sl.robust_degree(n, g, epsilon)
    largest = np.full(math.floor(degree) + 1, 2 ** (6 * degree) / g)
    single = sl.log10_complexity(n, g, epsilon)
    assert math.log10(sl.complexity(largest)) <= single <= math.log10(sl.complexity(largest)) + 1
    double = sl.log10_complexity_at(n, g, epsilon, 1.5)
    error = 10.0 ** -sl.log10_complexity(n, g, epsilon, 1.5)
    assert double == pytest.approx(math.log10(sl.complexity_at(largest, error, 1.5)), rel=1e-9)
    assert math.isfinite(sl.log10_complexity_at(1000, 0.01, 0.01))


def test_bad_coefficients_are_refused():
    with pytest.raises(InvalidArgument, match="coefficients must be a vector of at least one number; got shape"):
        sl.complexity([])
    with pytest.raises(InvalidArgument, match="coefficients must hold finite numbers"):
        sl.complexity_at([math.nan], 0.1)
