"""Success frontiers: how often each width and sample size learns, a map per start (pareto, Figures 1, 2 and 4).

Cells that differ in nothing but width, samples and start belong to one `Group`: its maps share their axes, so that a
sparse start can be compared with a dense one. Over a map the theory's curve of equal cost can be drawn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.report._findings import pair_counts, shared_runs
from fewfire.report._results import Results, read_results
from fewfire.report._settings import flatten, grouped, schedule, varying
from fewfire.sweeps import estimate_frontier
from fewfire.sweeps.spec._run_spec import call, start_name
from fewfire.sweeps.store._protocol import wilson_interval
from fewfire.sweeps.store._row import final
from fewfire.theory import frontier

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.sweeps import Store


PRECISION = 0.1
"""How finely the samples at even odds are computed."""

ODDS = 0.5
"""The probability of success δ of the theory, that of the measured line of one half."""


@dataclass(frozen=True, eq=False)
class SuccessFrontier:
    """The map of one start. Arrays have the shape (widths, samples) of its group.

    `setting` are ids of the cells, 0 where the sweep has none. `runs` are those that ended, `successes` and `diverged`
    among them; `failed` ones come on top. `low` and `high` are the ends of Wilson's 95% interval for the probability of
    success. `steps` (3, widths, samples) are quartiles of the time to convergence of the successful runs; NaN without
    any.

    `half` (widths,) are the samples at which half of the runs succeed, between two columns by logarithmic
    interpolation; 0 when the smallest column is enough, infinity when the largest is not, NaN without runs. Where
    columns have different numbers of runs, as a search leaves them, it is the estimate of `sweeps.estimate_frontier`,
    whose 95% `interval` (2, widths) has 0 and infinity for open ends.

    `source` is the store, where several are shown side by side. `pairs` (2, 2, widths, samples) is, of a store that is
    not the first with this start, how runs ended that are in both, as `pair_counts` gives them.
    """

    start: str
    setting: IdArray
    runs: IdArray
    successes: IdArray
    diverged: IdArray
    failed: IdArray
    low: Float64Array
    high: Float64Array
    steps: Float64Array
    half: Float64Array
    interval: Float64Array
    source: str = ""
    pairs: IdArray | None = None

    @property
    def success(self) -> Float64Array:
        """The share of successes; NaN without runs."""
        share: Float64Array = np.where(self.runs > 0, self.successes / np.maximum(self.runs, 1), np.nan)
        return share

    @property
    def name(self) -> str:
        """The start, and the store where there are several: "dense", "dense · longer.sqlite"."""
        return f"{self.start} · {self.source}" if self.source else self.start

    @property
    def title(self) -> str:
        """A heading: "dense start"."""
        return f"{self.start} start · {self.source}" if self.source else f"{self.start} start"


@dataclass(frozen=True, eq=False)
class Group:
    """The maps of one problem under one schedule, one per start.

    `label` distinguishes it from the other groups of the store. `widths` and `samples` ascend; None, which is last, is
    online. `frontiers` are in order of arrival; of several stores those with the same start next to each other. `spec`
    has what the cells share: the tables `problem` and `training`, and of `network` what is neither start nor width.
    """

    problem: str
    training: str
    label: str
    widths: tuple[int, ...]
    samples: tuple[int | None, ...]
    frontiers: tuple[SuccessFrontier, ...]
    spec: dict[str, Any]


def frontier_info(source: Store | Results, success_error: float | None = None) -> list[Group]:
    """Every frontier of a store, in order of arrival; see `read_results` for the arguments.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> (group,) = report.frontier_info(SqliteStore("grid.sqlite"))  # as the README's first sweep writes it
    >>> group.label, group.widths
    ('parity(n=30, k=3)', (10, 100, 300))
    >>> [(frontier.title, frontier.success.shape) for frontier in group.frontiers]
    [('dense start', (3, 5)), ('sparse(s=2) start', (3, 5))]
    """
    results = read_results(source, success_error)
    members = grouped(results.settings, ("start", "width"))
    specs = [{name: json.loads(key)[name] for name in ("problem", "training", "data", "network")} for key in members]
    names = _names(specs)
    status, quartiles = results.columns["status"], _quartiles(results)
    kinds = (final(status), results.success, status == "diverged", ~final(status))
    counts = np.stack([results.total(kind) for kind in kinds])  # by setting id; id 0 has none
    groups = []
    for spec, (problem, label), settings in zip(specs, names, members.values(), strict=True):
        widths = tuple(sorted({setting.width for setting in settings}))
        sizes = tuple(sorted({setting.samples for setting in settings}, key=lambda m: np.inf if m is None else m))
        row, column = ({value: index for index, value in enumerate(axis)} for axis in (widths, sizes))
        starts: dict[str, tuple[str, dict[str, IdArray]]] = {}
        for setting in settings:
            start, name = setting.start, results.sources.get(setting.id, "")
            key = json.dumps(start)
            if key not in starts:
                starts[key] = (start_name(start), {})
            grid = starts[key][1].setdefault(name, np.zeros((len(widths), len(sizes)), dtype=np.int64))
            grid[row[setting.width], column[setting.samples]] = setting.id
        frontiers = []
        for begun, grids in starts.values():
            for name, ids in grids.items():
                runs, successes, diverged, failed = counts[:, ids]
                low, high = wilson_interval(successes, runs)
                ended = (ids, runs, successes, diverged, failed, low, high, quartiles[:, ids])
                pairs = _pairs(results, next(iter(grids)), name, ids)
                frontiers.append(SuccessFrontier(begun, *ended, *even_odds(runs, successes, sizes), name, pairs))
        groups.append(Group(problem, schedule(spec["training"]), label, widths, sizes, tuple(frontiers), spec))
    return groups


def _names(specs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The problem of each group, and a label that no other group has; vectors appear only where they must."""
    flat = [flatten(spec) for spec in specs]
    differing = varying(flat)
    scalars = [path for path in differing if not any(leaves.get(path, "").startswith("[") for leaves in flat)]
    if len({tuple(leaves.get(path) for path in scalars) for leaves in flat}) == len(flat):
        differing = scalars
    inside = [path.removeprefix("problem.") for path in differing if path.startswith("problem.")]
    others = [path for path in differing if not path.startswith("problem.")]
    names = []
    for spec, leaves in zip(specs, flat, strict=True):
        problem = call(spec["problem"], inside)
        label = ", ".join([problem, *(f"{path.rpartition('.')[2]}={leaves.get(path, '–')}" for path in others)])
        names.append((problem, label))
    return names


def _pairs(results: Results, first: str, other: str, ids: IdArray) -> IdArray | None:
    """How the runs that a store shares with another ended, by the cells of the second."""
    if first == other:
        return None
    cell, sides = results.columns["setting"], []
    for source in (first, other):
        chosen = np.flatnonzero(np.isin(cell, [id for id, name in results.sources.items() if name == source]))
        sides.append({"index": chosen, **{name: results.columns[name][chosen] for name in ("hash", "status")}})
    one, two = (side["index"][index] for side, index in zip(sides, shared_runs(*sides), strict=True))
    return pair_counts(results.success[one], results.success[two], cell[two], max(results.sources) + 1)[..., ids]


def _quartiles(results: Results) -> Float64Array:
    """Quartiles of the time to convergence by setting id: shape (3, largest id + 1)."""
    found = np.full((3, len(results.total(results.success))), np.nan)
    ids, times = results.columns["setting"][results.success], results.convergence[results.success]
    order = np.lexsort((times, ids))
    present, first, runs = np.unique(ids[order], return_index=True, return_counts=True)
    index = first + (runs - 1) * np.array([[0.25], [0.5], [0.75]])
    below = np.floor(index).astype(np.int64)
    sorted_ = times[order]
    above = sorted_[np.minimum(below + 1, len(sorted_) - 1)] if len(sorted_) else sorted_
    found[:, present] = sorted_[below] + (above - sorted_[below]) * (index - below)
    return found


def even_odds(
    runs: AnyArray, successes: AnyArray, samples: tuple[int | None, ...]
) -> tuple[Float64Array, Float64Array]:
    """Samples at which half of the runs, counted in arrays of shape (widths, samples), succeed: shape (widths,).

    The other array is their interval, shape (2, widths).
    """
    finite = [index for index, m in enumerate(samples) if m is not None]
    half, interval = np.full(len(runs), np.nan), np.full((2, len(runs)), np.nan)
    columns = np.array([float(samples[index] or 0) for index in finite])
    for row, (tried, won) in enumerate(zip(runs[:, finite], successes[:, finite], strict=True)):
        if not tried.any():
            continue
        value, low, high = _estimate(tuple(columns.tolist()), tuple(won.tolist()), tuple(tried.tolist()))
        even = tried.min() == tried.max()
        half[row] = crossing(won / tried, columns) if even else value
        interval[:, row] = low, high
    return half, interval


@lru_cache(maxsize=1 << 14)
def _estimate(
    columns: tuple[float, ...], successes: tuple[int, ...], runs: tuple[int, ...]
) -> tuple[float, float, float]:
    """A row's estimate and its interval; remembered, since maps repeat their rows and live pages their maps."""
    found = estimate_frontier(np.array(columns), np.array(successes), np.array(runs), precision=PRECISION)
    return found.value, found.low, found.high


def crossing(success: Float64Array, samples: Float64Array) -> float:
    """Where one row of a map first reaches one half."""
    known = list(zip(np.log(samples), success, strict=True))
    if known[0][1] >= 0.5:
        return 0.0
    for (left, below), (right, above) in pairwise(known):
        if above >= 0.5:
            return float(np.exp(left + (right - left) * (0.5 - below) / (above - below)))
    return float("inf")


@dataclass(frozen=True, eq=False)
class TheoryOverlay:
    """The lower bound of pareto, Proposition 3, on a group, and its shape, in the units of the map.

    With r parameters, T steps, gradients of precision τ and probability of success δ, (n, k)-parities cannot all be
    learned while r·T/(τ²·δ) ≤ ¼·C(n, k), which is `needed`. m examples give τ = 1/√m up to logarithms, so the cost of a
    cell at even odds is 2·r·T·m; `smallest` is the least cost of any cell. The bound is for the worst parity and
    adversarial rounding of the gradients; SGD meets it with room to spare. What can be seen on a map is its shape:
    along a curve of equal cost, r·m is constant. `equal_cost` (starts, widths) are samples along the curve that fits
    the measured line of one half best; NaN where that is not inside the map.
    """

    needed: float
    smallest: float
    equal_cost: Float64Array


def theory_info(group: Group) -> TheoryOverlay | None:
    """The overlay of a group; None for what is no parity, for deeper networks, epochs, and online data alone."""
    problem = group.spec["problem"]
    finite = [m for m in group.samples if m is not None]
    steps = sum(int(phase.get("steps", 0)) for phase in group.spec["training"]["phases"])
    if problem["name"] != "parity" or not finite or group.spec.get("network") or not steps:
        return None
    parameters = [width * (problem["n"] + 2) + 1 for width in group.widths]
    ones = [frontier(problem["n"], problem["k"], r, steps, tau=1.0, delta=ODDS) for r in parameters]
    unit = np.array([one.supply for one in ones])  # the cost of one example, by width
    lines = np.stack([_fit(unit, frontier.half) for frontier in group.frontiers])
    return TheoryOverlay(ones[0].demand, float(unit[0] * finite[0]), lines)


def _fit(unit: Float64Array, half: Float64Array) -> Float64Array:
    """samples(width) = c / unit(width), c being the geometric mean of the costs on the measured line."""
    inside = np.isfinite(half) & (half > 0)
    if not inside.any():
        return np.full(len(unit), np.nan)
    cost = float(np.exp(np.mean(np.log(unit[inside] * half[inside]))))
    curve: Float64Array = cost / unit
    return curve
