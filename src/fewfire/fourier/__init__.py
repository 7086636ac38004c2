"""Boolean Fourier analysis: Walsh–Hadamard, spectra, sensitivities, low-degree fits."""

from fewfire.fourier._monomials import monomial_count, monomials

__all__ = ["monomial_count", "monomials"]
