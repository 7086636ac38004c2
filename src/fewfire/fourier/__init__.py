"""Boolean Fourier analysis: Walsh–Hadamard, spectra, sensitivities, low-degree estimates."""

from fewfire.fourier._estimate import estimate
from fewfire.fourier._least_squares import least_squares
from fewfire.fourier._monomial_matrix import evaluate
from fewfire.fourier._monomials import monomial_count, monomial_index, monomial_members, monomials
from fewfire.fourier._sampled import sampled
from fewfire.fourier._spectrum import Spectrum, spectrum
from fewfire.fourier._walsh import inverse, transform

__all__ = [
    "Spectrum",
    "estimate",
    "evaluate",
    "inverse",
    "least_squares",
    "monomial_count",
    "monomial_index",
    "monomial_members",
    "monomials",
    "sampled",
    "spectrum",
    "transform",
]
