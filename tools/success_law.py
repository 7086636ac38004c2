"""Fits of the law in `fewfire.sweeps.laws._success_law`, for `tools/laws.py`: maximum likelihood, then τ.

Counts by time have the likelihood that the law gives them, the shifts of cells integrated out by quadrature.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp
from scipy.stats import binom

from fewfire._errors import invalid
from fewfire.sweeps.laws._success_law import NAMES, NODES, PRIORS, CellFeatures, Range, SuccessLaw, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array
    from fewfire.sweeps.laws._cells import ParityCell

STEP = 1e-7  # for differences of likelihoods


def fit_success_law(cells: Sequence[ParityCell]) -> SuccessLaw:
    """The law of cells that share k and start."""
    kinds = {(cell.k, cell.start) for cell in cells}
    if len(kinds) != 1:
        raise invalid("cells", "must share k and start", sorted(kinds), "fit each kind by itself")
    ((k, start),) = kinds
    counts = CellCounts(cells)
    means, spreads = np.array([prior for terms in PRIORS.values() for prior in terms.values()]).T
    scales = np.minimum(spreads, 0.1)
    located = [np.log(cell.samples) for cell in cells if cell.samples and 0.2 < cell.successes[-1] / cell.runs < 0.8]
    found = means.copy()
    found[0] = float(np.median(located)) if located else found[0]
    for nodes in ((1, 1), NODES):  # first as if cells followed the law, which is quick and comes near

        def loss(moved: Float64Array, at: Float64Array = found, nodes: tuple[int, ...] = nodes) -> Any:
            each, slopes = counts.likelihood(at + scales * moved, nodes)
            off = (at + scales * moved - means) / spreads
            return 0.5 * off @ off - each.sum(), scales * (off / spreads - slopes.sum(axis=0))

        moved = minimize(loss, np.zeros_like(found), jac=True, method="BFGS", options={"maxiter": 400, "gtol": 0.05}).x
        found = found + scales * moved
    # The information as products of slopes, which unlike second derivatives is never negative in a flat direction.
    slopes = scales * counts.likelihood(found, NODES)[1]
    covariance = np.linalg.inv(slopes.T @ slopes + np.diag((scales / spreads) ** 2))
    factor = scales[:, None] * np.linalg.cholesky(covariance)
    return SuccessLaw(k, start, found, factor, _ranges(cells))


def _ranges(cells: Sequence[ParityCell]) -> tuple[Range, ...]:
    found = []
    for n in sorted({cell.n for cell in cells}):
        here = [cell for cell in cells if cell.n == n]
        widths = [cell.width for cell in here]
        samples = [size_of(cell.samples) for cell in here]
        steps = [t for cell in here for t in cell.steps]
        sizes = (int(min(samples)), float(max(samples)))
        found.append(Range(n, (min(widths), max(widths)), sizes, (min(steps), max(steps))))
    return tuple(found)


def spread(law: SuccessLaw, cells: Sequence[ParityCell]) -> SuccessLaw:
    """The law with the shifts of cells, τ, scaled so that cells which it was not fitted to are likeliest.

    A fit bends to its own cells, so only others say how far a new one lies from it.
    """
    shifts = np.array([float(name.startswith("log τ") and "·" not in name) for name in NAMES])

    def scaled(by: float) -> SuccessLaw:
        return replace(law, parameters=law.parameters + by * shifts)

    def loss(by: float) -> float:
        moved = scaled(by)
        drawn = [moved.draws(cell.n, cell.width, cell.samples, cell.steps[-1]) for cell in cells]
        seen = [np.mean(binom.pmf(c.successes[-1], c.runs, d)) for c, d in zip(cells, drawn, strict=True)]
        return -float(np.log(seen).sum())

    return scaled(minimize_scalar(loss, bounds=(-1.5, 1.5), method="bounded", options={"xatol": 0.02}).x)


def law_table(law: SuccessLaw) -> dict[str, Any]:
    """Plain data for JSON, which `SuccessLaw.from_dict` reads."""
    ranges = [
        {"n": r.n, "width": r.width, "samples": [low, None if np.isinf(most) else int(most)], "steps": r.steps}
        for r in law.ranges
        for low, most in [r.samples]
    ]
    return {
        "k": law.k,
        "start": law.start,
        "parameters": {name: float(f"{value:.5g}") for name, value in zip(NAMES, law.parameters, strict=True)},
        "factor": [[float(f"{value:.4g}") for value in row[: at + 1]] for at, row in enumerate(law.factor)],
        "ranges": ranges,
    }


class CellCounts:
    """Cells as arrays: successes between one number of steps and the next."""

    def __init__(self, cells: Sequence[ParityCell]) -> None:
        n, width, samples = (
            np.array([float(one) for one in column])
            for column in zip(*((cell.n, cell.width, size_of(cell.samples)) for cell in cells), strict=True)
        )
        self.cell_features = CellFeatures(n, width, samples)
        # Where nothing succeeded in between, only the ends matter: few of the counts are points to look at.
        points: dict[tuple[int, int], int] = {}
        spans = []
        for row, cell in enumerate(cells):
            before, won = 0, 0
            for steps, successes in zip(cell.steps, cell.successes, strict=True):
                if successes > won:
                    begin = points.setdefault((row, before), len(points)) if before else -1
                    spans.append((row, begin, points.setdefault((row, steps), len(points)), successes - won))
                before, won = steps, successes
        self.end = np.array([points.setdefault((row, c.steps[-1]), len(points)) for row, c in enumerate(cells)])
        self.row, looked = np.array(list(points)).T
        self.steps = looked.astype(np.float64)
        where, self.begin, self.until, new = np.array(spans, dtype=np.intp).reshape(-1, 4).T
        self.new = np.zeros((len(spans), len(cells)))
        self.new[np.arange(len(spans)), where] = new
        self.never = np.array([float(cell.runs - cell.successes[-1]) for cell in cells])

    def likelihood(self, parameters: Float64Array, nodes: tuple[int, ...]) -> tuple[Float64Array, Float64Array]:
        """The logarithm of each cell's likelihood, (cells,), and its slopes by differences, (cells, parameters)."""
        shifts, weights = _quadrature(nodes)
        values = self.cell_features.values(parameters)
        base = self._each(values, shifts, weights)
        slopes = []
        for name, value in values.items():
            moved = self._each({**values, name: value + STEP}, shifts, weights)
            slopes.append(((moved - base) / STEP)[:, None] * self.cell_features.features[name])
        return base, np.concatenate(slopes, axis=1)

    def _each(self, values: dict[str, Float64Array], shifts: Float64Array, weights: Float64Array) -> Float64Array:
        """The logarithm of each cell's likelihood, shape (cells,)."""
        probabilities = self.cell_features.probabilities(values, shifts, self.row, self.steps)
        before = np.where(self.begin < 0, 0.0, probabilities[:, self.begin])
        during = np.maximum(probabilities[:, self.until] - before, 1e-7)
        found = np.log(during) @ self.new + np.log(1 - probabilities[:, self.end]) * self.never
        return np.asarray(logsumexp(found, axis=0, b=weights[:, None]))


@cache
def _quadrature(nodes: tuple[int, ...]) -> tuple[Float64Array, Float64Array]:
    """Points, shape (2, points, 1), and weights for means over two standard normals."""
    points, weights = zip(*(hermegauss(count) for count in nodes), strict=True)
    grid = np.stack(np.meshgrid(*points, indexing="ij")).reshape(len(nodes), -1, 1)
    product = np.prod(np.meshgrid(*weights, indexing="ij"), axis=0).ravel()
    return grid, product / product.sum()
