"""Boolean Fourier analysis: Walsh–Hadamard, spectra, sensitivities, low-degree estimates, heavy coefficients."""

from fewfire.fourier._estimate import Estimate, estimate
from fewfire.fourier._goldreich_levin import QuerySearch, goldreich_levin
from fewfire.fourier._heavy import HeavyCoefficients, heavy, screen_support
from fewfire.fourier._least_squares import LeastSquares, least_squares
from fewfire.fourier._monomial_matrix import evaluate
from fewfire.fourier._monomials import monomial_count, monomial_index, monomial_members, monomials
from fewfire.fourier._sampled import Interval, SampledSpectrum, sampled
from fewfire.fourier._spectrum import Spectrum, spectrum
from fewfire.fourier._walsh import inverse, transform
from fewfire.theory.pareto import half_coefficient, majority_coefficient

__all__ = [
    "Estimate",
    "HeavyCoefficients",
    "Interval",
    "LeastSquares",
    "QuerySearch",
    "SampledSpectrum",
    "Spectrum",
    "estimate",
    "evaluate",
    "goldreich_levin",
    "half_coefficient",
    "heavy",
    "inverse",
    "least_squares",
    "majority_coefficient",
    "monomial_count",
    "monomial_index",
    "monomial_members",
    "monomials",
    "sampled",
    "screen_support",
    "spectrum",
    "transform",
]
