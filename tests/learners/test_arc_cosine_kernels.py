"""The closed-form kernels against wide finite networks, against each other, and on the cube."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.learners.baselines import ConjugateKernel, RandomFeatures, TangentKernel
from fewfire.problems import Parity

POINTS = np.vstack([cube(5)[[0, 1, 7, 30]], np.array([[0.3, -2, 1, 0, 0.5]])])


def finite_network_terms(bias, width=200_000):
    """Per neuron, 2·σσ′-products of all pairs of points: shape (width, points, points), conjugate and tangent."""
    stream = Stream(1, "kernels")
    n = POINTS.shape[1]
    w, v, u = (stream.child(name).normal((width, size)) for name, size in (("w", n), ("v", 1), ("u", 1)))
    inner = POINTS @ POINTS.T / n + bias**2
    z = w @ POINTS.T / np.sqrt(n) + bias * v
    value, slope = np.maximum(z, 0), (z > 0).astype(float)
    conjugate = 2 * value[:, :, None] * value[:, None, :]
    # ∇_u f = √(2/width) σ; ∇_(w, v) f = √(2/width) u σ′ x̃.
    hidden = 2 * (u * slope)[:, :, None] * (u * slope)[:, None, :] * inner
    return conjugate, conjugate + hidden


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_wide_finite_networks_tend_to_the_closed_forms(bias):
    for model, terms in zip((ConjugateKernel(bias), TangentKernel(bias)), finite_network_terms(bias), strict=True):
        error = terms.std(axis=0) / np.sqrt(len(terms))
        # 25 entries, 200,000 neurons: within five standard errors, which are at most 0.02 here.
        assert error.max() < 0.02
        assert (np.abs(terms.mean(axis=0) - model.kernel(POINTS)) <= 5 * error + 1e-12).all()


@pytest.mark.parametrize("bias", [0.0, 0.7])
def test_the_diagonals_are_as_documented(bias):
    lengths = (POINTS**2).sum(axis=1) / 5 + bias**2
    assert np.allclose(np.diag(ConjugateKernel(bias).kernel(POINTS)), lengths)
    assert np.allclose(np.diag(TangentKernel(bias).kernel(POINTS)), 2 * lengths)


@pytest.mark.parametrize("bias", [0.0, 0.7])
@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 1.4e-3, 1.5e-3, 0.5])
def test_small_angles_keep_their_digits(angle, bias):
    """κ₀ = 1 − θ/π of two rows on a circle, and of a row and the opposite of the other, where an arc cosine has eight."""
    turned = angle + np.array([0.3, 2.0, 5.0])
    A = np.stack([np.cos(turned - angle), np.sin(turned - angle)], axis=1)
    B = np.stack([np.cos(turned), np.sin(turned)], axis=1)
    scale = 0.5 + bias**2
    chord = np.linalg.norm(A - B, axis=1) / np.sqrt(2)
    between = 2 * np.arcsin(chord / 2 / np.sqrt(scale))  # with the bias, the angle of (x/√2, β) and (y/√2, β)
    for sign in (1, -1) if bias == 0 else (1,):
        theta = between if sign > 0 else np.pi - between
        tangent, conjugate = (np.diag(make(bias).kernel(A, sign * B)) for make in (TangentKernel, ConjugateKernel))
        slopes = (tangent - conjugate) / (scale * np.cos(theta))
        np.testing.assert_allclose(slopes, 1 - theta / np.pi, rtol=0, atol=1e-12)
        exact = scale * (np.sin(theta) + np.cos(theta) * (np.pi - theta)) / np.pi
        np.testing.assert_allclose(conjugate, exact, rtol=0, atol=1e-14)


@given(seed=st.integers(0, 100), bias=st.floats(0, 3))
def test_kernels_are_symmetric_and_positive(seed, bias):
    X = Stream(seed, "kernels").normal((12, 4))
    for model in (ConjugateKernel(bias), TangentKernel(bias)):
        K = model.kernel(X)
        assert np.allclose(K, K.T)
        assert np.allclose(K[:5], model.kernel(X[:5], X))
        assert np.linalg.eigvalsh(K).min() >= -1e-9 * np.trace(K)


@pytest.mark.parametrize("make", [ConjugateKernel, TangentKernel])
def test_only_the_bias_puts_odd_parities_in_reach(make):
    """On the cube the eigenvectors are the parities; the eigenvalue of a 3-bit one vanishes exactly without bias."""
    X = cube(6)
    for size, reachable in ((1, True), (2, True), (3, False), (4, True), (5, False)):
        parity = X[:, :size].prod(axis=1).astype(float)
        for bias in (0.0, 1.0):
            image = make(bias).kernel(X) @ parity
            eigenvalue = image @ parity / len(X)
            assert np.allclose(image, eigenvalue * parity, atol=1e-9)
            if bias == 0 and not reachable:
                assert abs(eigenvalue) < 1e-9
            else:
                assert eigenvalue > 1e-3


def test_zero_rows_have_kernel_zero_without_a_bias():
    X = np.zeros((2, 3))
    assert (ConjugateKernel(0.0).kernel(X) == 0).all()


def test_random_features_tend_to_the_conjugate_kernel():
    X, y = Parity(5, 2).sample(40, seed=0)
    features = RandomFeatures(width=20_000, random_state=0).fit(X, y).features(X)
    # Entries are means of 20,000 values of variance at most 2²·5: standard error at most 0.032, five of them 0.16.
    assert np.abs(features @ features.T - ConjugateKernel(1.0).kernel(X)).max() < 0.16
