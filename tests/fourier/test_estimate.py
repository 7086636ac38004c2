"""Empirical coefficients: the definition, every variant and thread count, the error bound, progress, errors."""

import math
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire import _extension, fourier
from fewfire._random import Stream
from fewfire.fourier import _estimate
from fewfire.fourier._estimate import estimate_reference

core = _extension.load()
ISAS = core.available_isas() if core else []


@pytest.fixture
def every_isa():
    """Run the body once per instruction set, and restore the best."""
    best = core.isa()
    yield ISAS
    core.set_isa(best)


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


def brute_force(X, y, degree):
    """The definition, summed exactly (math.fsum) set by set."""
    sums = []
    for row in fourier.monomials(X.shape[1], degree):
        members = row[row >= 0]
        sums.append(math.fsum((y * X[:, members].prod(axis=1)).tolist()))
    return np.array(sums) / len(y)


@settings(max_examples=40)
@given(n=st.integers(1, 9), samples=st.integers(1, 200), degree=st.integers(0, 4), seed=st.integers(0, 2**32))
def test_sign_labels_are_exact(n, samples, degree, seed):
    X, degree = sample(samples, n, seed), min(degree, n)
    y = Stream(seed, "labels").signs(samples)
    assert np.array_equal(fourier.estimate(X, y, degree).values, brute_force(X, y.astype(float), degree))


@settings(max_examples=40)
@given(n=st.integers(1, 9), samples=st.integers(1, 3000), degree=st.integers(0, 4), seed=st.integers(0, 2**32))
def test_real_labels_within_the_stated_error(n, samples, degree, seed):
    X, degree = sample(samples, n, seed), min(degree, n)
    y = Stream(seed, "labels").normal(samples)
    error = np.abs(fourier.estimate(X, y, degree).values - brute_force(X, y, degree))
    assert error.max() <= (samples / 1024 + 512) * 2.0**-53 * np.abs(y).mean()


@pytest.mark.skipif(core is None, reason="needs the C++ part")
@pytest.mark.parametrize(("n", "samples", "degree"), [(1, 1, 1), (7, 64, 4), (6, 65, 6), (70, 1100, 2), (5, 70001, 3)])
@pytest.mark.parametrize("real", [False, True])
def test_every_variant_and_thread_count_gives_the_same_bits(every_isa, n, samples, degree, real):
    X = sample(samples, n)
    labels = Stream(1, "labels")
    y = labels.normal(samples) if real else labels.signs(samples)
    expected = estimate_reference(X, np.asarray(y, dtype=float), degree)
    results = []
    for isa in every_isa:
        core.set_isa(isa)
        results += [fourier.estimate(X, y, degree, threads=threads).values for threads in (1, 2, 5)]
    for result in results:
        assert np.array_equal(result, results[0])
    assert np.allclose(results[0], expected, rtol=0, atol=1e-12 if real else 0)


def test_the_reference_serves_without_the_extension():
    X, y = sample(130, 6), Stream(2, "labels").normal(130)
    fast = fourier.estimate(X, y, 3).values
    told = []
    with _extension.without_extension():
        slow = fourier.estimate(X, y, 3, progress=lambda done, total: told.append((done, total))).values
    assert np.allclose(slow, fast, rtol=0, atol=1e-13)
    assert told == [(42, 42)]


def test_a_parity_is_found():
    X = sample(5000, 20)
    y = X[:, 3] * X[:, 11] * X[:, 17]
    result = fourier.estimate(X, y, 3)
    assert result.largest(1) == [((3, 11, 17), 1.0)]
    assert result.prune(0.5) == [((3, 11, 17), 1.0)]
    assert result.coefficient([17, 3, 11]) == 1.0
    assert result.sets.shape == (fourier.monomial_count(20, 3), 3)
    assert result.samples == 5000


def test_largest_and_prune_order_by_magnitude_then_index():
    result = _estimate.Estimate(np.array([0.5, -0.75, 0.5, 0.0, 0.25, -0.5, 0.1]), n=3, degree=2, samples=1)
    assert result.largest(2) == [((0,), -0.75), ((), 0.5)]
    assert result.largest(99)[:4] == [((0,), -0.75), ((), 0.5), ((1,), 0.5), ((0, 2), -0.5)]
    assert result.largest(0) == []
    assert result.prune(0.5) == [((0,), -0.75), ((), 0.5), ((1,), 0.5), ((0, 2), -0.5)]
    assert len(result.prune(0.0)) == 7


@pytest.mark.skipif(core is None, reason="needs the C++ part")
def test_progress_counts_up_to_the_total(monkeypatch):
    monkeypatch.setattr(_estimate, "_SLICE_SECONDS", 1e-9)  # as many slices as there can be
    X, y = sample(40_000_000 // 30, 30), Stream(1, "labels").signs(40_000_000 // 30)
    told = []
    result = fourier.estimate(X, y, 1, progress=lambda done, total: told.append((done, total)))
    assert [total for _, total in told] == [31] * len(told)
    assert told[-1] == (31, 31)
    assert len(told) > 2
    assert sorted({done for done, _ in told}) == [done for done, _ in told]
    assert result.values[0] == y.mean()


@pytest.mark.skipif(core is None, reason="needs the C++ part")
def test_ctrl_c_stops_a_long_call_between_slices():
    X = sample(20_000, 400)
    told = []

    def interrupt(done, total):
        told.append((done, total))
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fourier.estimate(X, X[:, 0] + 0.5, 3, progress=interrupt)
    (done, total) = told[0]
    assert len(told) == 1
    assert done < total == 10_667_001


@pytest.mark.parametrize(
    ("X", "y", "degree", "message"),
    [
        ([[1, 0]], [1], 1, r"X may hold only \+1 and −1; got 0\."),
        (np.zeros((2, 2), dtype=np.int8), [1, 1], 1, r"X may hold only \+1 and −1; got 0\."),
        ([[1, -1]], [1, 1], 1, r"y must be a vector of 1 labels, one per row of X; got shape \(2,\)\."),
        ([[1, -1]], [math.nan], 1, "y must hold finite numbers"),
        ([[1, -1]], [1], 3, "degree must be an integer of at least 0 and at most 2; got 3"),
    ],
)
def test_bad_input_is_refused(X, y, degree, message):
    with pytest.raises(ValueError, match=message):
        fourier.estimate(X, y, degree)


def test_bad_thread_counts_and_thresholds_are_refused():
    with pytest.raises(ValueError, match="threads must be an integer of at least 1"):
        fourier.estimate([[1]], [1], 1, threads=0)
    result = fourier.estimate([[1]], [1], 1)
    with pytest.raises(ValueError, match="threshold must be a finite number in"):
        result.prune(-1.0)
    with pytest.raises(ValueError, match="the size of members must be an integer of at least 0 and at most 0"):
        fourier.estimate([[1]], [1], 0).coefficient([0])
