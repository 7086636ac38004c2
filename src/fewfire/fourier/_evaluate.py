"""Values of a polynomial of low degree at many points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._cores import thread_count
from fewfire._errors import invalid
from fewfire._validate import check_finite, check_integer, check_signs
from fewfire.fourier._monomial_matrix import MonomialMatrix
from fewfire.fourier._monomials import monomial_count

if TYPE_CHECKING:
    from fewfire._types import Float64Array


def evaluate(X: object, values: object, degree: int, *, threads: int | None = None) -> Float64Array:
    """Σ_S values[S] χ_S(x) for every row x, without a matrix of monomials.

    Parameters
    ----------
    X : array of ±1, shape (samples, n)
    values : array of shape (monomial_count(n, degree),)
        Coefficients in the order of `monomials(n, degree)`; zeros cost nothing where they come together.
    degree : int
    threads : int, optional
        All cores unless given.

    Returns
    -------
    array of shape (samples,)
    """
    signs = check_signs("X", X)
    n = signs.shape[1]
    degree = check_integer("degree", degree, 0, n, "a monomial has at most n distinct coordinates")
    coefficients = np.ascontiguousarray(values, dtype=np.float64)
    count = monomial_count(n, degree)
    if coefficients.shape != (count,):
        rule = f"must hold one coefficient for each of the {count} monomials of degree at most {degree}"
        raise invalid("values", rule, f"shape {coefficients.shape}", "pass the values of an estimate of that degree")
    check_finite("values", coefficients)
    return MonomialMatrix(signs, degree, thread_count(threads)).values(coefficients)
