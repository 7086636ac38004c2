"""Statements about targets that fail as printed, next to the corrected ones that hold."""

from itertools import product

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy.special import erf

from fewfire import FewfireWarning
from fewfire._random import Stream
from fewfire.learners.baselines import GaussianElimination
from fewfire.problems import LearningWithRounding, Parity, SphereSlice, gamma, separation


@pytest.mark.parametrize("k", range(1, 9))
def test_parity_from_the_sum_of_the_support(k):
    """pareto, section B.2.2, prints χ_S(x) = s_x mod 2; it is (−1)^((k − s_x)/2)."""
    rows = np.array(list(product((1, -1), repeat=k + 1)))
    sums = rows[:, :k].sum(axis=1)
    target = Parity(k + 1, k).target(rows)
    assert (sums % 2 == k % 2).all()
    assert (target == 1).sum() == (target == -1).sum() == 2**k
    assert (target == (-1.0) ** ((k - sums) // 2)).all()


# sublinear, Lemma 4.2: f*(x̃) = Σ_i y_i q(⟨x_i, x̃⟩) is near y_j at every x̃ of the slice within ρ of x_j, not near y_i.
# q is the polynomial of Claim 4.3: within ε₁ of 0 on [−1, 1 − (δ − ρ)²/2] and of 1 on [1 − ρ²/2, 1], where δ is the
# separation. With ε₁ = ε/(3n) and |y_i| ≤ 1 the errors add up to ε/3.
POINTS, DIMENSION, RHO, EPSILON = 8, 6, 0.08, 0.3


def isolating_polynomial(X):
    """A smooth step between the two intervals, cut to the degree that the lemma allows."""
    delta, width = separation(X), gamma(X, RHO)
    degree = int(24 / width * np.log(48 * POINTS / EPSILON))
    low, high = 1 - (delta - RHO) ** 2 / 2, 1 - RHO**2 / 2
    assert high - low == pytest.approx(width / 2)
    middle, steepness = (low + high) / 2, 5.0 / (high - low)
    q = chebyshev.Chebyshev.interpolate(lambda z: (1 + erf(steepness * (z - middle))) / 2, degree, domain=[-1, 1])
    assert np.abs(q(np.linspace(-1, low, 20_001))).max() <= EPSILON / (3 * POINTS)
    assert np.abs(q(np.linspace(high, 1, 20_001)) - 1).max() <= EPSILON / (3 * POINTS)
    return q


def perturbed(X):
    """200 points of the slice around each x_j, half of them inside the ball of radius ρ, half on its border."""
    flat = X[:, None, :-1]
    direction = Stream(1, "moves").normal((POINTS, 200, DIMENSION - 1))
    direction -= (direction * flat).sum(axis=2, keepdims=True) * flat / 0.75
    direction *= np.sqrt(0.75) / np.linalg.norm(direction, axis=2, keepdims=True)
    distance = RHO * np.minimum(1, np.linspace(0, 2, 200))[:, None]
    angle = 2 * np.arcsin(distance / np.sqrt(3))
    moved = np.cos(angle) * flat + np.sin(angle) * direction
    return np.concatenate([moved, np.full((POINTS, 200, 1), 0.5)], axis=2)


@pytest.fixture(scope="module")
def fit():
    """f* at the perturbed points, of shape (POINTS, 200), and the labels."""
    X, y = SphereSlice(POINTS, DIMENSION, 0.7).sample(seed=6)
    X = X.astype(np.float64)
    moved = perturbed(X)
    assert np.linalg.norm(moved - X[:, None], axis=2).max() == pytest.approx(RHO, rel=1e-5)
    q = isolating_polynomial(X)
    return np.einsum("i,ijs->js", y, q(np.einsum("id,jsd->ijs", X, moved))), y


def test_robust_fit_meets_the_label_of_its_own_point(fit):
    values, y = fit
    assert np.abs(values - y[:, None]).max() <= EPSILON / 3


def test_robust_fit_misses_any_other_label(fit):
    """The printed y_i read as a free index: off by 2 wherever y_i ≠ y_j."""
    values, y = fit
    other = np.abs(values[None] - y[:, None, None])[y[:, None] != y]
    assert other.size and other.min() > 2 - EPSILON / 3


def test_robust_fit_misses_the_sum_of_labels(fit):
    """The printed y_i read as summed over with the rest."""
    values, y = fit
    assert y.sum() == 4
    assert np.abs(values - y.sum()).min() > 2


def test_signed_digits_need_an_offset():
    """sparse-activations, section 4, prints ⟨v, z(y)⟩ = ⟨w, y⟩ for ±1 digits z(y); an offset is missing."""
    problem = LearningWithRounding(2, 3, 8, secret=(3, 5))
    Y = np.array(list(product(range(8), repeat=2)))
    Z, products = problem.encode(Y).astype(np.float64), Y @ problem.secret
    best, *_ = np.linalg.lstsq(Z, products, rcond=None)
    assert np.abs(Z @ best - products).max() > 20
    v = np.kron(problem.secret, 2.0 ** np.arange(problem.digits)) / 2
    offset = sum(problem.secret) * (2**problem.digits - 1) / 2
    np.testing.assert_array_equal(Z @ v + offset, products)


def test_mod_q_then_mod_p_rounds_nothing():
    """sparse-activations, Definition 15, prints (⟨w, y⟩ mod q) mod p: linear where p divides q, and then easy to learn.

    With p = 2 the label is the parity of the last digits of the y_i with odd w_i. Rounded, the label is the first digit
    of ⟨w, y⟩ mod q, which no parity of the digits is.
    """
    m, q = 6, 1024
    printed, corrected = (LearningWithRounding(m, 2, q, rounding=rounding) for rounding in ("remainder", "floor"))
    X, y = printed.sample(100, seed=0)  # 60 digits and a sign
    new, labels = printed.sample(1000, seed=1)
    broken = GaussianElimination(intercept=True).fit(X, y)
    assert broken.consistent_ and broken.score(new, labels) == 1.0
    assert broken.support_ == tuple(10 * i for i, w in enumerate(printed.secret) if w % 2)
    for p in (4, 8):  # the same for every p that divides q
        values = LearningWithRounding(m, p, q, rounding="remainder").target(new)
        products = corrected.decode(new) @ np.array(LearningWithRounding(m, p, q).secret)
        assert np.array_equal(values, products % p)
    X, y = corrected.sample(100, seed=0)
    new, labels = corrected.sample(1000, seed=1)
    with pytest.warns(FewfireWarning, match="not a parity"):
        fitted = GaussianElimination(intercept=True).fit(X, y)
    assert abs(fitted.score(new, labels) - 0.5) < 4 * 0.5 / np.sqrt(1000)
    assert abs(labels.mean() - 0.5) < 4 * 0.5 / np.sqrt(1000)
