"""What a frontier says in words: whether width bought data, and whether a sparse start helped (pareto, section 4.1).

Both compare cells that differ in the one thing asked about, pair by pair, by the test of Cochran, Mantel and Haenszel.
A difference counts when it gives |z| > 1.96; otherwise the sentence says that the matter is not clear. Where no run
succeeded there is nothing to compare, and the sentence says how the runs ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import AnyArray
    from fewfire.report._frontier import Group, SuccessFrontier

CLEAR = 1.96


@dataclass(frozen=True)
class FrontierFinding:
    """One sentence.

    Parameters
    ----------
    topic : "width", "start" or "success"
    start : str
        The start it is about.
    holds : bool or None
        Whether the numbers clearly say so (True), clearly say the opposite (False), or leave it open (None).
    text : str
        The sentence, with the numbers.
    """

    topic: str
    start: str
    holds: bool | None
    text: str


def findings_info(group: Group) -> list[FrontierFinding]:
    """The findings of a group: width for each start, and sparse against dense where both are there."""
    found = [_nothing(f) if not f.successes.any() else _width(group, f) for f in group.frontiers]
    dense = [f for f in group.frontiers if f.start.startswith("dense")]
    sparse = [f for f in group.frontiers if "sparse" in f.start]
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
    return FrontierFinding("success", frontier.start, False, f"No run succeeds from a {frontier.start} start: {some}.")


def _width(group: Group, frontier: SuccessFrontier) -> FrontierFinding | None:
    narrow, wide = _Side(frontier, 0), _Side(frontier, -1)
    if len(group.widths) == 1 or not (narrow.runs * wide.runs).any():
        return None
    z = stratified_z(wide.successes, wide.runs, narrow.successes, narrow.runs)
    opening = _say(z, "Width buys data", "Width does not buy data", "Whether width buys data is not clear")
    low, high = (f"width {group.widths[row]:,}" for row in (0, -1))
    finite = [m for m in group.samples if m is not None]
    text = f"{narrow.share} of the runs succeed at {low} and {wide.share} at {high}."
    if finite:
        need = [_examples(float(frontier.half[row]), finite) for row in (0, -1)]
        text = f"half of the runs succeed with {need[0]} at {low} and with {need[1]} at {high}; over all sizes, {text}"
    text = f"{opening}: from a {frontier.start} start {text}"
    return FrontierFinding("width", frontier.start, _verdict(z), text)


def _start(dense: SuccessFrontier, sparse: SuccessFrontier) -> FrontierFinding | None:
    a, b = _Side(dense), _Side(sparse)
    both = (a.runs > 0) & (b.runs > 0)
    if not both.any():
        return None
    z = stratified_z(b.successes, b.runs, a.successes, a.runs)
    opening = _say(z, "A sparse start helps", "A sparse start hurts", "Whether a sparse start helps is not clear")
    difference = (sparse.success - dense.success)[both]
    text = (
        f"{opening}: {b.share} of the runs succeed from {sparse.start} and {a.share} from {dense.start}, more often in "
        f"{int((difference > 0).sum())} and less often in {int((difference < 0).sum())} of {int(both.sum())} cells."
    )
    return FrontierFinding("start", sparse.start, _verdict(z), text)


class _Side:
    """The successes and runs of a whole map, or of one row of it."""

    def __init__(self, frontier: SuccessFrontier, row: int | None = None) -> None:
        self.successes = frontier.successes if row is None else frontier.successes[row]
        self.runs = frontier.runs if row is None else frontier.runs[row]

    @property
    def share(self) -> str:
        """In percent."""
        return f"{self.successes.sum() / max(1, self.runs.sum()):.0%}"


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


def _verdict(z: float) -> bool | None:
    return None if abs(z) <= CLEAR else z > 0


def _say(z: float, yes: str, no: str, open_: str) -> str:
    return {True: yes, False: no, None: open_}[_verdict(z)]


def _examples(half: float, finite: list[int]) -> str:
    """How many examples even odds take."""
    if isfinite(half) and half > 0:
        return f"about {half:,.0f} examples"
    return f"at most {finite[0]:,} examples" if half == 0 else f"more than {finite[-1]:,} examples"
