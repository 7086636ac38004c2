"""Which terms of a fitted polynomial are more than noise.

Put back into the residuals, a term's empirical coefficient is c_S + mean(residual·χ_S): for uniform inputs the fit's
shrinkage is undone (the de-biased lasso with the identity as the inverse covariance). If the label owed nothing to the
term, it would be normal with deviation σ/√m, σ the deviation of held-out residuals (that of the labels where nothing
was held out). All monomials up to the degree count as tested. The noise floor is what the largest of them exceeds with
probability `level` at most: Bonferroni's bound; Benjamini and Hochberg's keeps the expected share of false terms among
those called significant below `level`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fewfire.fourier import monomial_count
from fewfire.fourier._monomial_matrix import MonomialMatrix
from fewfire.fourier._monomials import monomial_table

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.learners._low_degree._polynomial import Polynomial
    from fewfire.learners._low_degree._sample import SignSample

Correction: TypeAlias = Literal["bonferroni", "fdr"]
"""At most one false term with probability `level`; or a share `level` of false ones among those named."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """De-biased coefficients (terms,) as in `Polynomial.all_values`, their deviation by chance, how many are tested."""

    effects: Float64Array
    deviation: float
    tests: int

    def floor(self, level: float) -> float:
        """The largest effect by chance, but with probability `level`."""
        from scipy.special import ndtri

        return float(-ndtri(level / (2.0 * max(1, self.tests))) * self.deviation)

    def significant(self, correction: Correction, level: float) -> AnyArray:
        """Which terms are; never the constant."""
        from scipy.special import erfc

        if self.deviation > 0.0:
            values = erfc(np.abs(self.effects) / (self.deviation * np.sqrt(2.0)))
        else:
            values = np.where(self.effects == 0.0, 1.0, 0.0)
        values[0] = 1.0
        if correction == "bonferroni":
            return np.asarray(values * self.tests <= level)
        order = np.argsort(values, kind="stable")
        passed = np.flatnonzero(values[order] <= level * np.arange(1, len(values) + 1) / max(1, self.tests))
        chosen = np.zeros(len(values), dtype=bool)
        chosen[order[: passed[-1] + 1 if len(passed) else 0]] = True
        return chosen


def gather_evidence(
    polynomial: Polynomial, degree: int, sample: SignSample, held_out: Float64Array, threads: int
) -> Evidence:
    """The evidence for every term of a polynomial fitted to a sample, all of `degree` being tested."""
    weights = sample.weights / sample.weights.sum()
    residual = sample.labels - polynomial.at(sample.signs, threads)
    back = np.array([float(weights @ residual)])
    if polynomial.full_degree:
        back = MonomialMatrix(sample.signs, polynomial.full_degree, threads).sums(weights * residual)
    if len(polynomial.values):
        rows = max(1, (1 << 22) // len(polynomial.values))
        above = np.zeros(len(polynomial.values))
        for start in range(0, len(sample), rows):
            part = slice(start, start + rows)
            above += (weights[part] * residual[part]) @ monomial_table(sample.signs[part], polynomial.sets)
        back = np.concatenate([back, above])
    noise = sample.labels - sample.mean
    if not np.isnan(held_out).all():
        noise = np.where(np.isnan(held_out), np.nan, sample.labels - held_out)
    seen = ~np.isnan(noise)
    variance = float(np.average(noise[seen] ** 2, weights=sample.weights[seen]))
    tests = monomial_count(polynomial.n, degree) - 1
    return Evidence(polynomial.all_values + back, float(np.sqrt(variance / sample.effective)), tests)
