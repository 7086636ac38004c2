"""Two stores compared: runs that both have are paired, the others are compared cell by cell.

A run is a function of its spec, so a run that two stores share is no second observation. Its two endings are one pair,
and pairs that end alike say nothing. Pairs and cells are the strata of one Cochran–Mantel–Haenszel test; for pairs
alone it is McNemar's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.experiments.store import final

if TYPE_CHECKING:
    from fewfire._types import AnyArray, IdArray

CLEAR = 1.96
"""Standard errors from which a difference is called clear."""


def shared_runs(first: dict[str, AnyArray], other: dict[str, AnyArray]) -> tuple[IdArray, IdArray]:
    """The places of the finished runs that the columns of two stores have in common, in either."""
    ours, theirs = (np.flatnonzero(final(columns["status"])) for columns in (first, other))
    found = np.intersect1d(first["hash"][ours], other["hash"][theirs], assume_unique=True, return_indices=True)
    return ours[found[1]], theirs[found[2]]


def pair_counts(won: AnyArray, other_won: AnyArray, cell: AnyArray, cells: int) -> IdArray:
    """How pairs ended: entry (i, j, c) counts those of cell c that succeeded i times in the first, j in the other."""
    flat = (2 * won.astype(np.int64) + other_won) * cells + cell
    return np.asarray(np.bincount(flat, minlength=4 * cells).reshape(2, 2, cells), dtype=np.int64)


def compared_z(won: AnyArray, runs: AnyArray, other_won: AnyArray, other_runs: AnyArray, pairs: AnyArray) -> float:
    """How many standard errors the first store's successes are above even chances; 0 when nothing tells.

    Parameters
    ----------
    won, runs, other_won, other_runs : int arrays of one shape
        Successes and runs of each cell, shared ones included.
    pairs : int array of shape (2, 2, *cells)
        As `pair_counts` gives them.
    """
    both = pairs.sum(axis=(0, 1))
    own = (won - pairs[1].sum(axis=0), runs - both, other_won - pairs[:, 1].sum(axis=0), other_runs - both)
    split = np.repeat([[1, 1, 0, 1], [0, 1, 1, 1]], [pairs[1, 0].sum(), pairs[0, 1].sum()], axis=0)
    return stratified_z(*(np.concatenate([cells.ravel(), more]) for cells, more in zip(own, split.T, strict=True)))


def stratified_z(won: AnyArray, runs: AnyArray, other_won: AnyArray, other_runs: AnyArray) -> float:
    """How many standard errors the first side's successes are above even chances, cell by cell; 0 when nothing tells.

    In a cell of N runs with s successes, the first side's n runs would have n·s/N of them, with the variance of drawing
    without replacement. Arrays have one shape; cells with no runs on a side do not count.
    """
    total, successes = runs + other_runs, won + other_won
    used = (runs > 0) & (other_runs > 0)
    n, rest, both, wins = (side[used].astype(np.float64) for side in (runs, other_runs, total, successes))
    expected = n * wins / both
    variance = n * rest * wins * (both - wins) / (both**2 * (both - 1))
    spread = float(np.sqrt(variance.sum()))
    return float((won[used] - expected).sum()) / spread if spread > 0 else 0.0
