"""The low-degree algorithm as statistical queries (sparse-activations, Lemma 7): one query per coefficient.

An answer is off by at most scale·τ. One that could come from a coefficient of 0, of magnitude up to scale·τ itself, is
left out, and the coefficient behind it may be twice that. So the mean squared error is at most the weight above the
degree plus C(n, ≤ d)·(2·scale·τ)², where the oracle's expectations are exact: polynomially many queries of polynomial
tolerance for a constant degree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_integer, check_number, check_signs
from fewfire.fourier import monomials
from fewfire.learners.statistical_queries._parity import character

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, SignArray
    from fewfire.learners.statistical_queries._oracle import Query, SQOracle


@dataclass(frozen=True, eq=False)
class QueriedPolynomial:
    """A polynomial whose coefficients are answers.

    Parameters
    ----------
    n : int
        Inputs.
    terms : list of (set, coefficient)
        Largest first, each within scale·τ of the truth; those that the oracle's resolution cannot tell from 0 are left
        out, though they may be as large as scale·(resolution + τ).
    queries : int
        How many were asked.
    """

    n: int
    terms: list[tuple[tuple[int, ...], float]]
    queries: int

    def predict(self, X: AnyArray) -> Float64Array:
        """The value of the polynomial on each row of ±1 inputs, of shape (rows,)."""
        signs = check_signs("X", X, self.n)
        values = np.zeros(len(signs))
        for members, coefficient in self.terms:
            values += coefficient * character(signs, members)
        return values


def learn_low_degree(oracle: SQOracle, degree: int, *, scale: float = 1.0) -> QueriedPolynomial:
    """Ask for every coefficient of degree at most `degree`.

    Parameters
    ----------
    oracle : SQOracle
    degree : int
        At most the number of inputs.
    scale : float
        No label may exceed it in absolute value; queries are y·χ_S(x)/scale.

    Examples
    --------
    >>> from fewfire.learners.statistical_queries import SQOracle, learn_low_degree
    >>> from fewfire.problems import Parity
    >>> oracle = SQOracle(Parity(6, 2, support=[1, 3]), tolerance=0.1)
    >>> learn_low_degree(oracle, degree=2).queries
    22
    """
    degree = check_integer("degree", degree, 0, oracle.inputs, "a monomial has at most n distinct coordinates")
    scale = check_number("scale", scale, 0.0, open_low=True)
    terms: list[tuple[tuple[int, ...], float]] = []
    sets = monomials(oracle.inputs, degree)
    for row in sets:
        members = tuple(int(member) for member in row if member >= 0)
        answer = oracle.query(_coefficient(members, scale))
        if abs(answer) > oracle.resolution:
            terms.append((members, scale * answer))
    terms.sort(key=lambda term: -abs(term[1]))
    return QueriedPolynomial(oracle.inputs, terms, len(sets))


def _coefficient(members: tuple[int, ...], scale: float) -> Query:
    def phi(X: SignArray, y: AnyArray) -> AnyArray:
        return y * character(X, members) / scale

    return phi
