"""A frontier in sentences: whether width bought data, and whether a sparse start helped (pareto, section 4.1).

Both compare cells that differ in the one thing asked about, pair by pair, by the test of Cochran, Mantel and Haenszel.
A difference counts when it gives |z| > 1.96; otherwise the sentence leaves it open. Where no run
succeeded there is nothing to compare, and the sentence reports how the runs ended.

Stores are compared by the same test. A run is a function of its spec, so a run that two stores share is no second
observation: its two endings are one pair, and pairs that end alike do not count. Pairs and cells are the strata of one
test; for pairs alone it is McNemar's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from fewfire.sweeps.store._row import final

if TYPE_CHECKING:
    from fewfire._types import AnyArray, IdArray
    from fewfire.report._frontier import Group, SuccessFrontier


CLEAR = 1.96
"""Standard errors from which a difference is clear."""


@dataclass(frozen=True)
class FrontierFinding:
    """One sentence about a start, on "width", "start", "store" or "success", with the numbers.

    `holds`: whether the numbers clearly show it (True), clearly show the opposite (False), or leave it open (None).
    """

    topic: str
    start: str
    holds: bool | None
    text: str


def findings_info(group: Group) -> list[FrontierFinding]:
    """The findings of a group: store against store, width for each start, sparse against dense where both are there.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> (group,) = report.frontier_info(SqliteStore("grid.sqlite"))  # as the README's first sweep writes it
    >>> [(finding.topic, finding.start) for finding in report.findings_info(group)]
    [('width', 'dense'), ('width', 'sparse(s=2)'), ('start', 'sparse(s=2)')]
    """
    found = []
    for start in dict.fromkeys(f.start for f in group.frontiers):
        first, *others = (f for f in group.frontiers if f.start == start)
        found += [_store(first, other) for other in others if first.source != other.source]
    found += [_nothing(f) if not f.successes.any() else _width(group, f) for f in group.frontiers]
    for source in dict.fromkeys(f.source for f in group.frontiers):
        dense = [f for f in group.frontiers if f.source == source and f.start.startswith("dense")]
        sparse = [f for f in group.frontiers if f.source == source and "sparse" in f.start]
        found += [_start(a, b) for a in dense[:1] for b in sparse if a.successes.any() or b.successes.any()]
    return [finding for finding in found if finding is not None]


def _nothing(frontier: SuccessFrontier) -> FrontierFinding | None:
    runs, diverged = int(frontier.runs.sum()), int(frontier.diverged.sum())
    if not runs:
        return None
    ended = "its only run" if runs == 1 else f"all {runs:,} runs"
    some = f"{ended} diverged" if diverged == runs else f"{ended} ended above the success error"
    if 0 < diverged < runs:
        some = f"of {runs:,} runs {diverged:,} diverged and {runs - diverged:,} ended above the success error"
    return FrontierFinding("success", frontier.start, False, f"No run succeeds {_origin(frontier)}: {some}.")


def _width(group: Group, frontier: SuccessFrontier) -> FrontierFinding | None:
    narrow, wide = _Side(frontier, 0), _Side(frontier, -1)
    if len(group.widths) == 1 or not (narrow.runs * wide.runs).any():
        return None
    z = stratified_z(wide.successes, wide.runs, narrow.successes, narrow.runs)
    opening = _opening(z, "Width buys data", "Width does not buy data", "Whether width buys data is not clear")
    low, high = (f"width {group.widths[row]:,}" for row in (0, -1))
    finite = [m for m in group.samples if m is not None]
    text = f"{narrow.share} of the runs succeed at {low} and {wide.share} at {high}."
    if finite:
        need = [_examples(float(frontier.half[row]), finite) for row in (0, -1)]
        text = f"half of the runs succeed with {need[0]} at {low} and with {need[1]} at {high}; over all sizes, {text}"
    text = f"{opening}: {_origin(frontier)} {text}"
    return FrontierFinding("width", frontier.start, _verdict(z), text)


def _start(dense: SuccessFrontier, sparse: SuccessFrontier) -> FrontierFinding | None:
    a, b = _Side(dense), _Side(sparse)
    if not ((a.runs > 0) & (b.runs > 0)).any():
        return None
    z = stratified_z(b.successes, b.runs, a.successes, a.runs)
    opening = _opening(z, "A sparse start helps", "A sparse start hurts", "Whether a sparse start helps is not clear")
    where = f"In {sparse.source} {opening[0].lower()}{opening[1:]}" if sparse.source else opening
    text = f"{where}: {b.share} of the runs succeed from {sparse.start} and {a.share} from {dense.start}"
    return FrontierFinding("start", sparse.start, _verdict(z), f"{text}, {_apart(sparse, dense)}")


def _store(first: SuccessFrontier, other: SuccessFrontier) -> FrontierFinding | None:
    a, b = _Side(first), _Side(other)
    both = (a.runs > 0) & (b.runs > 0)
    if not both.any() or not (a.successes[both].any() or b.successes[both].any()):
        return None
    pairs = other.pairs if other.pairs is not None else np.zeros((2, 2, *a.runs.shape), dtype=np.int64)
    shared, z = int(pairs.sum()), -compared_z(a.successes, a.runs, b.successes, b.runs, pairs)
    if not is_comparable(a.runs, b.runs, pairs):
        names = f"{first.source} and {other.source}"
        text = f"{names} hold the same {shared:,} runs from a {first.start} start, which end alike"
        more = int(a.runs[both].sum() + b.runs[both].sum()) - 2 * shared
        text += f"; no cell has others in both, so that {more:,} more say nothing about a difference." if more else "."
        return FrontierFinding("store", first.start, None, text)
    names = f"{other.source} than in {first.source}"
    open_ = f"Whether {first.source} and {other.source} differ is not clear"
    opening = _opening(z, f"More runs succeed in {names}", f"Fewer runs succeed in {names}", open_)
    shares = [f"{side.successes[both].sum() / side.runs[both].sum():.0%}" for side in (b, a)]
    text = f"{opening}: from a {first.start} start {shares[0]} against {shares[1]}, {_apart(other, first)}"
    if shared:
        text += f" {shared:,} runs are in both; they count as pairs."
    return FrontierFinding("store", first.start, _verdict(z), text)


def _apart(one: SuccessFrontier, other: SuccessFrontier) -> str:
    """In how many of the cells that both have the first succeeds more often, and less often."""
    both = (one.runs > 0) & (other.runs > 0)
    difference = (one.success - other.success)[both]
    more, less = int((difference > 0).sum()), int((difference < 0).sum())
    return f"more often in {more} and less often in {less} of {int(both.sum())} cells."


def _origin(frontier: SuccessFrontier) -> str:
    where = f" in {frontier.source}" if frontier.source else ""
    return f"from a {frontier.start} start{where}"


class _Side:
    """The successes and runs of a whole map, or of one row of it."""

    def __init__(self, frontier: SuccessFrontier, row: int | None = None) -> None:
        self.successes = frontier.successes if row is None else frontier.successes[row]
        self.runs = frontier.runs if row is None else frontier.runs[row]

    @property
    def share(self) -> str:
        """In percent."""
        return f"{self.successes.sum() / max(1, self.runs.sum()):.0%}"


def _verdict(z: float) -> bool | None:
    return None if abs(z) <= CLEAR else z > 0


def _opening(z: float, yes: str, no: str, open_: str) -> str:
    return {True: yes, False: no, None: open_}[_verdict(z)]


def _examples(half: float, finite: list[int]) -> str:
    """How many examples even odds take."""
    if isfinite(half) and half > 0:
        return f"about {half:,.0f} examples"
    return f"at most {finite[0]:,} examples" if half == 0 else f"more than {finite[-1]:,} examples"


def shared_runs(first: dict[str, AnyArray], other: dict[str, AnyArray]) -> tuple[IdArray, IdArray]:
    """The indices of the finished runs that two stores share, in the columns of each."""
    ours, theirs = (np.flatnonzero(final(columns["status"])) for columns in (first, other))
    found = np.intersect1d(first["hash"][ours], other["hash"][theirs], assume_unique=True, return_indices=True)
    return ours[found[1]], theirs[found[2]]


def pair_counts(won: AnyArray, other_won: AnyArray, cell: AnyArray, cells: int) -> IdArray:
    """How pairs ended: entry (i, j, c) counts those of cell c that succeeded i times in the first, j in the other."""
    flat = (2 * won.astype(np.int64) + other_won) * cells + cell
    return np.asarray(np.bincount(flat, minlength=4 * cells).reshape(2, 2, cells), dtype=np.int64)


def is_comparable(runs: AnyArray, other_runs: AnyArray, pairs: AnyArray) -> bool:
    """Whether any run distinguishes the sides: in some cell a pair ends differently, or both have runs of their own.

    Parameters are those of `compared_z`.
    """
    both = pairs.sum(axis=(0, 1))
    return bool(pairs[0, 1].any() or pairs[1, 0].any() or ((runs > both) & (other_runs > both)).any())


def compared_z(won: AnyArray, runs: AnyArray, other_won: AnyArray, other_runs: AnyArray, pairs: AnyArray) -> float:
    """How many standard errors the first store's successes are above even odds; 0 when no run counts.

    Successes and runs of each cell include shared ones; `pairs` (2, 2, *cells) is as `pair_counts` gives them.
    """
    both = pairs.sum(axis=(0, 1))
    own = (won - pairs[1].sum(axis=0), runs - both, other_won - pairs[:, 1].sum(axis=0), other_runs - both)
    split = np.repeat([[1, 1, 0, 1], [0, 1, 1, 1]], [pairs[1, 0].sum(), pairs[0, 1].sum()], axis=0)
    return stratified_z(*(np.concatenate([cells.ravel(), more]) for cells, more in zip(own, split.T, strict=True)))


def stratified_z(won: AnyArray, runs: AnyArray, other_won: AnyArray, other_runs: AnyArray) -> float:
    """How many standard errors the first side's successes are above even odds, cell by cell; 0 when no run counts.

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
