"""The exact Fourier picture of a function on {±1}ⁿ: weights, influences, sensitivities.

Definitions of sparse-activations, section 2.1, for f with real values; x^⊕i is x with coordinate i flipped, N_ρ(x) is x
with every coordinate flipped with probability (1 − ρ)/2. With W_d = Σ_{|S| = d} f̂(S)²:

    influence of i        E ¼(f(x) − f(x^⊕i))²          = Σ_{S ∋ i} f̂(S)²
    average sensitivity   E Σ_i ¼(f(x) − f(x^⊕i))²      = Σ_d d · W_d
    noise sensitivity     E ¼(f(x) − f(N_ρ(x)))²        = Σ_d ½(1 − ρᵈ) · W_d

Everything is read off the coefficients in blocks, so memory besides their 2ⁿ numbers stays small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fewfire._cube import cube_blocks
from fewfire._errors import invalid
from fewfire._html import bars, card
from fewfire._types import AnyArray, Float64Array, FloatArray
from fewfire._validate import check_finite, check_integer, check_number, check_support
from fewfire.fourier._functions import as_function
from fewfire.fourier._monomials import Term, members_of, strongest, terms
from fewfire.fourier._walsh import aligned_empty, check_length, transform

MAX_INPUTS = 30
"""Largest n of an exact spectrum: 8 GiB of coefficients."""

_BLOCK = 16
"""log2 of the coefficients squared at a time."""

_SHOWN = 20
"""Largest n for which a notebook shows weights and terms: more would take a second or longer."""


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """All Fourier coefficients of a function, and what follows from them.

    Parameters
    ----------
    coefficients : array of shape (2ⁿ,)
        f̂(S) at the number whose bits are the members of S, as `transform` gives it.

    Examples
    --------
    >>> import fewfire as ff
    >>> spectrum = ff.fourier.spectrum([1.0, 1.0, 1.0, -1.0])  # AND of two bits
    >>> spectrum.largest(2), spectrum.tail(1)
    ([((), 0.5), ((0,), 0.5)], 0.25)
    >>> spectrum.influences().tolist()
    [0.5, 0.5]
    """

    coefficients: FloatArray
    n: int = field(init=False)

    def __post_init__(self) -> None:
        coefficients = np.asarray(self.coefficients)
        if coefficients.dtype.kind != "f":
            coefficients = coefficients.astype(np.float64)
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "n", check_length("coefficients", coefficients))

    def coefficient(self, members: Sequence[int]) -> float:
        """f̂(S) of one set of coordinates."""
        return float(self.coefficients[sum(1 << member for member in check_support("members", members, self.n))])

    def largest(self, count: int) -> list[Term]:
        """The `count` terms of largest magnitude, largest first; ties go to the lower index."""
        chosen = strongest(self.coefficients, check_integer("count", count, 0))
        return terms(self.coefficients, chosen, members_of)

    @property
    def norm_squared(self) -> float:
        """‖f‖² = E f(x)², by Parseval."""
        return float(self._weights.sum())

    def weights(self) -> Float64Array:
        """W_d = Σ_{|S| = d} f̂(S)² for d = 0 … n: array of shape (n + 1,)."""
        return self._weights.copy()

    def weight(self, degree: int) -> float:
        """W_degree, the squared coefficients of one degree."""
        return float(self._weights[check_integer("degree", degree, 0, self.n)])

    def tail(self, degree: int) -> float:
        """Σ_{|S| > degree} f̂(S)², what a polynomial of that degree must miss."""
        return float(self._tails[check_integer("degree", degree, 0, self.n)])

    def degree_for(self, epsilon: float) -> int:
        """The least degree whose tail is at most epsilon."""
        epsilon = check_number("epsilon", epsilon, 0.0)
        return int(np.argmax(self._tails <= epsilon))

    def influences(self) -> Float64Array:
        """Σ_{S ∋ i} f̂(S)² for every coordinate: array of shape (n,)."""
        influences = np.zeros(self.n)
        for start, energy in self._energy_blocks():
            size = len(energy).bit_length() - 1
            # Fold from the highest bit down: the upper half holds the sets with that coordinate.
            for bit in range(size - 1, -1, -1):
                lower, upper = energy[: 1 << bit], energy[1 << bit :]
                influences[bit] += upper.sum()
                energy = lower + upper
            for bit in range(size, self.n):
                if start >> bit & 1:
                    influences[bit] += energy[0]
        return influences

    def average_sensitivity(self) -> float:
        """AS(f) = Σ_d d · W_d: for ±1 values, the mean number of coordinates whose flip changes f."""
        return float(np.arange(self.n + 1) @ self._weights)

    def noise_sensitivity(self, rho: float) -> float:
        """NS_ρ(f) = Σ_d ½(1 − ρᵈ) · W_d, −1 ≤ ρ ≤ 1."""
        rho = check_number("rho", rho, -1.0, 1.0)
        return float(0.5 * (1.0 - rho ** np.arange(self.n + 1)) @ self._weights)

    def __repr__(self) -> str:
        return f"Spectrum(n={self.n}, dtype={self.coefficients.dtype})"

    def _repr_html_(self) -> str:
        if self.n > _SHOWN:
            return card("Spectrum", {"inputs": self.n})
        largest = [f"{value:+.4g} at {{{', '.join(map(str, members))}}}" for members, value in self.largest(3)]
        facts = {"inputs": self.n, "‖f‖²": f"{self.norm_squared:.4g}", "largest": "; ".join(largest)}
        return card("Spectrum", facts, bars("weight by degree", self._weights))

    @cached_property
    def _weights(self) -> Float64Array:
        weights = np.zeros(self.n + 1)
        sizes = np.zeros(1, dtype=np.int64)  # number of bits of 0 … 2^b − 1
        for _ in range(min(self.n, _BLOCK)):
            sizes = np.concatenate([sizes, sizes + 1])
        for start, energy in self._energy_blocks():
            sums = np.bincount(sizes, weights=energy)
            above = start.bit_count()
            weights[above : above + len(sums)] += sums
        return weights

    @cached_property
    def _tails(self) -> Float64Array:
        """Added from the top, so that a small tail is not the difference of two large sums."""
        return np.append(np.cumsum(self._weights[:0:-1])[::-1], 0.0)

    def _energy_blocks(self) -> Iterator[tuple[int, Float64Array]]:
        size = 1 << min(self.n, _BLOCK)
        for start in range(0, len(self.coefficients), size):
            yield start, np.square(self.coefficients[start : start + size], dtype=np.float64)


def spectrum(f: object, n: int | None = None, *, threads: int | None = None) -> Spectrum:
    """The exact spectrum of a function, from its values on the whole cube.

    Parameters
    ----------
    f : array of 2ⁿ values, callable, network or problem
        Values in the order of the cube; or a callable from int8 tables of ±1 of shape (rows, n) to shape (rows,); or
        an object with `inputs` and a call (a network) or `inputs` and `target` (a problem).
    n : int, optional
        Number of inputs; needed with a plain callable.
    threads : int, optional
        Threads of the transform; all cores unless given.

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> import fewfire as ff
    >>> majority = ff.fourier.spectrum(lambda X: (X.sum(axis=1) > 0) * 2.0 - 1.0, 3)
    >>> majority.weights().tolist()
    [0.0, 0.75, 0.0, 0.25]
    >>> majority.coefficient([0, 1, 2]), majority.average_sensitivity()
    (-0.5, 1.5)
    """
    if callable(f) or hasattr(f, "target"):
        evaluate, inputs = as_function(f, n)
        check_integer("n", inputs, 1, MAX_INPUTS, "use fourier.sampled beyond")
        values = aligned_empty(2**inputs, np.dtype(np.float64))
        at = 0
        for points in cube_blocks(inputs):
            values[at : at + len(points)] = evaluate(points)
            at += len(points)
        return Spectrum(transform(values, inplace=True, threads=threads))
    table: AnyArray = np.asarray(f)
    if table.dtype.kind not in "biuf":
        got, remedy = f"dtype {table.dtype}", "convert the values to float64"
        raise invalid("f", "must be 2ⁿ real numbers or callable", got, remedy)
    inputs = check_length("f", table)
    if n is not None and check_integer("n", n, 0) != inputs:
        raise invalid("n", f"must agree with the {len(table)} values of f", n, "leave n out")
    finite = check_finite("f", table.astype(np.float64))
    return Spectrum(transform(finite, inplace=True, threads=threads))
