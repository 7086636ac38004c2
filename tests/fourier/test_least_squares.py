"""Least squares over all monomials: the explicit solution, recovery, noise, choice of solver, warnings, progress."""

import contextlib
import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.preprocessing import PolynomialFeatures

from fewfire import fourier
from fewfire._errors import ConvergenceWarning, InvalidArgument
from fewfire._extension import without_extension
from fewfire._random import Stream
from fewfire._threads import thread_count
from fewfire.fourier import _conjugate_gradients, _gram, _least_squares
from fewfire.fourier._monomial_matrix import MonomialMatrix

SHAPES = [(5, 2, 40), (6, 3, 20), (8, 2, 200), (4, 4, 100), (7, 0, 10), (5, 1, 3), (10, 3, 400), (9, 4, 60), (3, 3, 1)]


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


def matrix_of(X, degree):
    """The matrix of monomials by definition."""
    columns = [X[:, row[row >= 0]].prod(axis=1) for row in fourier.monomials(X.shape[1], degree)]
    return np.stack(columns, axis=1).astype(np.float64)


def explicit(X, y, degree, alpha):
    """The ridge solution with free intercept, of least norm, from a singular value decomposition."""
    A = matrix_of(X, degree)[:, 1:]
    means, mean = A.mean(axis=0), y.mean()
    stacked = np.vstack([A - means, np.sqrt(alpha) * np.eye(A.shape[1])])
    target = np.concatenate([y - mean, np.zeros(A.shape[1])])
    values = np.linalg.lstsq(stacked, target, rcond=1e-11)[0]
    return np.concatenate([[mean - means @ values], values])


def correlated(samples, n, seed=0):
    """Signs that mostly agree with each other: an ill-conditioned problem."""
    common = Stream(seed, "common").normal((samples, 1))
    return np.where(Stream(seed, "own").normal((samples, n)) + 2 * common > 0.5, -1, 1).astype(np.int8)


@pytest.mark.parametrize(("n", "degree", "samples"), SHAPES)
@pytest.mark.parametrize("alpha", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("solver", ["cg", "gram", "auto"])
def test_equals_the_explicit_solution(n, degree, samples, alpha, solver):
    X, y = sample(samples, n), Stream(1, "labels").normal(samples) + 2.0
    fit = fourier.least_squares(X, y, degree, alpha=alpha, solver=solver, tol=1e-12)
    assert np.allclose(fit.values, explicit(X, y, degree, alpha), rtol=0, atol=1e-8)
    assert fit.converged
    assert fit.solver in (("cg", "gram") if solver == "auto" else (solver,))
    assert (fit.n, fit.degree, fit.samples, fit.alpha) == (n, degree, samples, alpha)


@pytest.mark.parametrize("solver", ["cg", "gram"])
def test_predicts_as_ridge_on_polynomial_features(solver):
    X, new, y = sample(500, 9), sample(100, 9, seed=5), Stream(2, "labels").normal(500)
    features = PolynomialFeatures(3, interaction_only=True, include_bias=False)
    ridge = Ridge(alpha=2.0).fit(features.fit_transform(X), y)
    fit = fourier.least_squares(X, y, 3, alpha=2.0, solver=solver, tol=1e-10)
    assert np.allclose(fourier.evaluate(new, fit.values, 3), ridge.predict(features.transform(new)), atol=1e-8)


def test_default_tolerance_keeps_predictions_to_1e_5_with_as_many_monomials_as_samples():
    """The hard case in small: 1.1 samples per monomial, condition number about 450, and the peak of the variance."""
    n, degree = 16, 3
    samples = round(1.1 * fourier.monomial_count(n, degree))
    X, new, y = sample(samples, n), sample(2000, n, seed=9), Stream(3, "labels").normal(samples)
    exact = explicit(X, y, degree, 0.0)
    fit = fourier.least_squares(X, y, degree, solver="cg")
    assert np.abs(fourier.evaluate(X, fit.values - exact, degree)).max() < 1e-5
    assert np.abs(fourier.evaluate(new, fit.values - exact, degree)).max() < 1e-4


def test_the_error_it_reports_is_its_error():
    X, y = sample(800, 16), Stream(4, "labels").normal(800)
    exact = explicit(X, y, 3, 1.0)
    for tol in (1e-2, 1e-4, 1e-6):
        fit = fourier.least_squares(X, y, 3, alpha=1.0, solver="cg", tol=tol)
        difference = fit.values - exact
        energy = np.sum(fourier.evaluate(X, difference, 3) ** 2) + np.sum(difference[1:] ** 2)
        true = np.sqrt(energy / np.sum((y - y.mean()) ** 2))
        assert fit.error <= tol
        assert 0.3 * fit.error <= true <= 3 * fit.error


@settings(max_examples=25)
@given(n=st.integers(3, 8), degree=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_recovers_a_polynomial_exactly(n, degree, seed):
    count = fourier.monomial_count(n, degree)
    truth = Stream(seed, "truth").normal(count)
    X = np.concatenate([sample(4 * count, n, seed), fourier_cube(n)])
    fit = fourier.least_squares(X, fourier.evaluate(X, truth, degree), degree, tol=1e-12)
    assert np.allclose(fit.values, truth, atol=1e-9)


def fourier_cube(n):
    return np.array(list(itertools.product([1, -1], repeat=n)), dtype=np.int8)


def test_recovers_a_junta():
    X = sample(3000, 20)
    y = np.where((X[:, 3] == 1) & (X[:, 7] == -1), 1.0, X[:, 11])
    fit = fourier.least_squares(X, y, 3, tol=1e-10)
    expected = {
        (): 0.25,
        (3,): 0.25,
        (7,): -0.25,
        (3, 7): -0.25,
        (11,): 0.75,
        (3, 11): -0.25,
        (7, 11): 0.25,
        (3, 7, 11): 0.25,
    }
    assert dict(fit.prune(1e-6)) == pytest.approx(expected, abs=1e-8)


def test_gaussian_noise_costs_what_theory_predicts():
    """Without ridge the fit moves by the projection of the noise: squared length σ² times a χ² of p degrees."""
    X, sigma = sample(4000, 20), 0.5
    p = fourier.monomial_count(20, 3)
    clean = X[:, 0] * X[:, 1] * X[:, 2] + 0.5 * X[:, 4]
    fit = fourier.least_squares(X, clean + sigma * Stream(6, "noise").normal(4000), 3)
    moved = np.sum((fourier.evaluate(X, fit.values, 3) - clean) ** 2) / sigma**2
    assert abs(moved - p) < 4 * np.sqrt(2 * p)  # four standard deviations


def test_agnostic_labels_of_higher_degree_are_fitted_by_their_low_degree_part():
    """On the whole cube the best polynomial of degree d is the truncated Fourier series."""
    X = fourier_cube(8)
    y = X[:, 0] * X[:, 1] * X[:, 2] * X[:, 3] + 0.5 * X[:, 4] - 0.25
    assert fourier.least_squares(X, y, 3, solver="cg").prune(1e-12) == [((4,), 0.5), ((), -0.25)]


def test_results_do_not_depend_on_threads_or_instruction_set(core):
    X, y = sample(900, 14), Stream(7, "labels").normal(900)
    results = []
    for isa, threads in itertools.product(core.available_isas(), (1, 3)):
        core.set_isa(isa)
        results.append(fourier.least_squares(X, y, 3, solver="cg", threads=threads).values)
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_the_reference_code_gives_the_same():
    X, y = sample(300, 8), Stream(8, "labels").normal(300)
    for solver in ("cg", "gram"):
        fast = fourier.least_squares(X, y, 3, solver=solver, tol=1e-11).values
        with without_extension():
            assert np.allclose(fourier.least_squares(X, y, 3, solver=solver, tol=1e-11).values, fast, atol=1e-9)


@pytest.mark.usefixtures("core")
def test_memory_stays_far_below_the_matrix():
    """The matrix would take 145 MB; arrays of samples, of monomials and of subcubes are all there is."""
    X, y = sample(4000, 30), Stream(9, "labels").normal(4000)
    matrix = 8 * len(X) * fourier.monomial_count(30, 3)
    tracemalloc.start()
    try:
        fit = fourier.least_squares(X, y, 3, alpha=1.0, solver="cg")
        fourier.evaluate(X, fit.values, 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < matrix / 40


def test_auto_prefers_the_iteration_for_wide_uniform_problems_and_gram_for_narrow_ones():
    def steps(n, degree, samples, alpha=1.0):
        matrix = MonomialMatrix(sample(samples, n), degree, 2)
        cost = _gram.gram_seconds(samples, n, degree)
        return _least_squares._steps_worth_trying(matrix, alpha, 1e-7, 2000, cost)

    assert steps(24, 3, 20_000) > 10  # 2325 monomials: a factorisation costs many steps
    assert steps(8, 2, 20_000) == 0  # 37 monomials: factor at once
    assert steps(24, 3, 500, alpha=0.0) == 2000  # singular: only the iteration has the solution of least norm


def test_auto_turns_to_gram_when_the_iteration_is_slow(monkeypatch):
    monkeypatch.setattr(_least_squares, "_steps_worth_trying", lambda *_: 12)
    X = correlated(600, 9)
    y = X[:, 0] * X[:, 1] + Stream(10, "labels").normal(600)
    fit = fourier.least_squares(X, y, 3, alpha=0.1)
    assert (fit.solver, fit.iterations, fit.error, fit.converged) == ("gram", 12, 0.0, True)
    assert np.allclose(fit.values, explicit(X, y, 3, 0.1), atol=1e-7)


def test_stopping_early_warns_with_the_remedy():
    X = correlated(600, 9)
    y = X[:, 0] * X[:, 1] + Stream(11, "labels").normal(600)
    message = (
        r"conjugate gradients stopped after max_iter = 20 steps at an estimated relative error of \S+, above tol = "
        r"1\.0e-07\. Remedy: raise alpha \(near-duplicate columns, or as many monomials as samples, converge slowly "
        r"without it\), raise max_iter, or loosen tol\."
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        fit = fourier.least_squares(X, y, 3, solver="cg", max_iter=20)
    assert caught[0].filename == __file__
    assert (fit.converged, fit.iterations) == (False, 20)
    assert fit.error > 1e-7


def test_expected_iterations_hold_for_uniform_inputs():
    for n, degree, samples in [(14, 3, 1500), (14, 3, 520), (12, 2, 5000)]:
        X, y = sample(samples, n), Stream(12, "labels").normal(samples)
        fit = fourier.least_squares(X, y, degree, solver="cg")
        expected = _conjugate_gradients.expected_iterations(samples, len(fit.values), 0.0, 1e-7)
        assert 0.4 * expected <= fit.iterations <= 1.5 * expected
    assert _conjugate_gradients.expected_iterations(100, 100, 0.0, 1e-7) == np.inf


def test_progress_counts_steps_towards_a_total(monkeypatch):
    monkeypatch.setattr(_least_squares, "_REPORT_SECONDS", 0.0)
    X, y, calls = sample(600, 14), Stream(13, "labels").normal(600), []
    fit = fourier.least_squares(X, y, 3, solver="cg", progress=lambda done, total: calls.append((done, total)))
    assert [done for done, _ in calls] == list(range(1, fit.iterations + 1))
    assert calls[-1] == (fit.iterations, fit.iterations)
    assert all(done <= total <= 2000 for done, total in calls)
    assert 0.5 * fit.iterations <= calls[fit.iterations // 2][1] <= 2 * fit.iterations


@pytest.mark.usefixtures("core")
def test_progress_of_the_gram_route_and_silence_between():
    X, y, calls = sample(600, 10), Stream(13, "labels").normal(600), []
    fourier.least_squares(X, y, 3, solver="gram", progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (fourier.monomial_count(10, 6),) * 2
    calls.clear()
    fourier.least_squares(X, y, 1, solver="cg", progress=lambda done, total: calls.append((done, total)))
    assert len(calls) == 1  # far less than a tenth of a second: reported once, at the end


def test_an_interrupt_stops_the_fit(monkeypatch):
    monkeypatch.setattr(_least_squares, "_REPORT_SECONDS", 0.0)
    seen = []

    def interrupt(done, total):
        seen.append(done)
        if done == 3:
            raise KeyboardInterrupt

    X, y = sample(600, 14), Stream(14, "labels").normal(600)
    with pytest.raises(KeyboardInterrupt):
        fourier.least_squares(X, y, 3, solver="cg", progress=interrupt)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"alpha": -1.0}, "alpha must be a finite number in [0, inf); got -1.0."),
        ({"solver": "qr"}, "solver must be one of 'auto', 'cg', 'gram'; got 'qr'."),
        ({"tol": 0.0}, "tol must be a finite number in (0, 1); got 0.0."),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0."),
        ({"threads": 0}, "threads must be an integer of at least 1 and at most 1024; got 0. Remedy: pass None for all cores."),
        ({"degree": 5}, "degree must be an integer of at least 0 and at most 4; got 5. Remedy: a monomial has at most n distinct coordinates."),
        ({"y": [1.0]}, "y must be a vector of 6 labels, one per row of X; got shape (1,)."),
        ({"X": np.zeros((6, 4))}, "X may hold only +1 and −1; got 0.0. Remedy: map 0 to +1 and 1 to −1, or threshold it."),
    ],
)  # fmt: skip
def test_errors_name_the_argument_and_the_remedy(arguments, text):
    call = {"X": sample(6, 4), "y": np.arange(6.0), "degree": 2} | arguments
    with pytest.raises(InvalidArgument) as caught:
        fourier.least_squares(**call)
    assert str(caught.value) == text


def test_a_gram_matrix_that_would_not_fit_is_refused():
    with pytest.raises(InvalidArgument) as caught:
        fourier.least_squares(sample(10, 60), np.arange(10.0), 3, solver="gram")
    expected = "solver must be 'cg' or 'auto' for 36051 monomials (too large for a Gram matrix); got 'gram'."
    assert str(caught.value) == expected


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("constant", [3.5, 0.1, 0.0, -1e8 / 3])
def test_constant_labels_give_the_constant(degree, constant):
    """Also where their mean, as computed, is a little off."""
    fit = fourier.least_squares(sample(23, 4), np.full(23, constant), degree, solver="cg")
    assert fit.values == pytest.approx([constant] + [0.0] * (len(fit.values) - 1), rel=1e-15, abs=0)
    assert (fit.iterations, fit.converged) == (0, True)


@pytest.mark.parametrize("solver", ["cg", "gram"])
def test_columns_without_information_get_nothing(solver):
    """Only constant columns, then one that varies among them: the intercept is free, so it takes all there is."""
    y = Stream(16, "labels").normal(50) + 0.1
    X = np.ones((50, 3), dtype=np.int8)
    fit = fourier.least_squares(X, y, 2, solver=solver)
    assert np.allclose(fit.values, [y.mean()] + [0.0] * 6, atol=1e-15)
    X[:25, 1] = -1
    fit = fourier.least_squares(X, y, 1, solver=solver, tol=1e-12)
    half = (y[25:].mean() - y[:25].mean()) / 2
    assert np.allclose(fit.values, [y.mean(), 0.0, half, 0.0], atol=1e-12)


def test_evaluate_is_the_polynomial():
    X = sample(700, 11)
    values = Stream(15, "values").normal(fourier.monomial_count(11, 3))
    assert np.allclose(fourier.evaluate(X, values, 3), matrix_of(X, 3) @ values)
    assert np.allclose(fourier.evaluate(X.astype(float), values, 3, threads=1), matrix_of(X, 3) @ values)
    with pytest.raises(InvalidArgument) as caught:
        fourier.evaluate(X, values[:-1], 3)
    assert str(caught.value) == (
        "values must hold one coefficient for each of the 232 monomials of degree at most 3; got shape (231,). "
        "Remedy: pass the values of an estimate of that degree."
    )
    with pytest.raises(InvalidArgument, match="values must hold finite numbers; got a nan at index"):
        fourier.evaluate(X, np.full(len(values), np.nan), 3)


def test_threads_default_to_the_cores():
    assert thread_count(None) >= 1


@pytest.mark.parametrize(("n", "degree", "samples"), SHAPES)
@pytest.mark.parametrize("alpha", [0.1, 10.0])
@pytest.mark.parametrize("solver", ["cg", "gram"])
@pytest.mark.parametrize("extension", [True, False])
def test_a_weight_counts_as_repetition(n, degree, samples, alpha, solver, extension):
    X, y = sample(samples, n), Stream(1, "labels").normal(samples) + 2.0
    weights = np.arange(samples) % 4
    weights[0] = 3
    expected = explicit(np.repeat(X, weights, axis=0), np.repeat(y, weights), degree, alpha)
    with contextlib.nullcontext() if extension else without_extension():
        fit = fourier.least_squares(X, y, degree, alpha=alpha, solver=solver, tol=1e-12, weights=weights)
    assert np.allclose(fit.values, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1.0, 2.0], "weights must have one weight for each of the 5 rows; got shape (2,)."),
        ([1, 1, -1, 1, 1], "weights must not be negative; got -1.0. Remedy: leave rows out by a weight of 0."),
        (np.zeros(5), "weights must be above 0 for at least one row; got an array of zeros."),
        ([1, 1, 1, 1, np.nan], "weights must hold finite numbers; got a nan at index (4,). Remedy: drop or impute"),
    ],
)
def test_bad_weights(weights, text):
    with pytest.raises(InvalidArgument) as caught:
        fourier.least_squares(sample(5, 3), np.ones(5), 1, weights=weights)
    assert str(caught.value).startswith(text)
