"""Agreement with boofun on every quantity both define, for n ≤ 10. Checked with boofun 1.3.0.

boofun reads a truth table in the same order (coordinate j is bit j of the row number) with 0 for +1 and 1 for −1.
"""

import warnings

import numpy as np
import pytest

from fewfire import fourier
from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.papers import pareto

boofun = pytest.importorskip("boofun")
analysis = pytest.importorskip("boofun.analysis")
tools = pytest.importorskip("boofun.analysis.fourier")
sensitivity = pytest.importorskip("boofun.analysis.sensitivity")
biased = pytest.importorskip("boofun.analysis.p_biased")
cryptographic = pytest.importorskip("boofun.analysis.cryptographic")
# boofun warns about packages it could use.
pytestmark = pytest.mark.filterwarnings("ignore")


def tables():
    rules = {
        "majority 9": lambda X: np.where(X.sum(axis=1) > 0, 1, -1),
        "parity of three in 6": lambda X: X[:, [0, 2, 5]].prod(axis=1),
        "and 4": lambda X: np.where((X < 0).all(axis=1), -1, 1),
        "halfspace 8": lambda X: np.where(X @ np.arange(1, X.shape[1] + 1) > 3, 1, -1),
        "constant 3": lambda X: np.ones(len(X)),
    }
    named = {name: rule(cube(int(name.split()[-1]))) for name, rule in rules.items()}
    return named | {f"random {n}": Stream(n, "table").signs(2**n) for n in (1, 2, 5, 7, 10)}


TABLES = tables()


def pair(name):
    """Our spectrum, and boofun's function with its analyzer."""
    signs = np.asarray(TABLES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = boofun.create([bool(value < 0) for value in signs])
        return fourier.spectrum(signs), function, analysis.SpectralAnalyzer(function)


@pytest.mark.parametrize("name", TABLES)
def test_coefficients_weights_and_tails(name):
    ours, function, theirs = pair(name)
    assert function.n_vars == ours.n
    assert np.allclose(theirs.fourier_expansion(), ours.coefficients, rtol=0, atol=1e-12)
    assert np.allclose(
        cryptographic.walsh_transform(function), fourier.transform(TABLES[name], normalise=False), rtol=0, atol=1e-9
    )
    for index in {0, 1, 2**ours.n - 1}:
        members = [j for j in range(ours.n) if index >> j & 1]
        assert theirs.get_fourier_coefficient(index) == pytest.approx(ours.coefficient(members), abs=1e-12)
    by_degree = tools.fourier_weight_distribution(function)
    for d in range(ours.n + 1):
        assert by_degree.get(d, 0.0) == pytest.approx(ours.weight(d), abs=1e-12)
        assert function.W(d) == pytest.approx(ours.weight(d), abs=1e-12)
        assert theirs.spectral_concentration(d) == pytest.approx(1.0 - ours.tail(d), abs=1e-12)
    holds, time_side, frequency_side = tools.parseval_verify(function)
    assert holds
    assert time_side == pytest.approx(ours.norm_squared)
    assert frequency_side == pytest.approx(ours.norm_squared)
    assert tools.fourier_degree(function) == ours.degree_for(1e-12)


@pytest.mark.parametrize("name", TABLES)
def test_influences_and_sensitivities(name):
    ours, function, theirs = pair(name)
    assert np.allclose(theirs.influences(), ours.influences(), rtol=0, atol=1e-12)
    assert theirs.total_influence() == pytest.approx(ours.average_sensitivity(), abs=1e-12)
    assert sensitivity.average_sensitivity(function) == pytest.approx(ours.average_sensitivity(), abs=1e-12)
    for i in range(ours.n):
        assert biased.p_biased_influence(function, i, 0.5) == pytest.approx(ours.influences()[i], abs=1e-12)
    for rho in (-1.0, -0.3, 0.0, 0.5, 0.9, 1.0):
        # Stab = Σ ρ^|S| f̂² and NS = ½ Σ (1 − ρ^|S|) f̂².
        stability = ours.norm_squared - 2.0 * ours.noise_sensitivity(rho)
        assert theirs.noise_stability(rho) == pytest.approx(stability, abs=1e-12)


@pytest.mark.parametrize("name", ["majority 9", "random 7", "parity of three in 6"])
def test_dominant_terms(name):
    ours, function, _ = pair(name)
    dominant = tools.dominant_coefficients(function, top_k=5, threshold=0.0)
    magnitudes = [abs(value) for _, value in ours.largest(5)]
    assert np.allclose([abs(value) for _, value in dominant], magnitudes, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [3, 5, 7, 9])
def test_majority_in_closed_form(n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = boofun.majority(n).fourier()
    # boofun's Maj is 1, that is −1 in signs, when most inputs are 1, that is −1: our Maj.
    expected = [pareto.majority_coefficient(n, index.bit_count()) for index in range(2**n)]
    assert np.allclose(theirs, expected, rtol=0, atol=1e-12)
