"""`[search]` of a spec: instead of a grid along one axis, look for the value at which a share of the runs succeeds.

The values that may be tried are a range `{log = [low, high], points = …}`, so fine that two steps make up half of the
interval asked for. A sweep with a search *is* the grid over these values with `budget` trials; the search trains a few
of its runs, chosen by the outcomes of the others. So each is the run, with its hash and its streams, that a grid with
that value and that trial would have.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import product
from math import ceil, log
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number, did_you_mean
from fewfire.sweeps.spec._grid import SEQUENCES, VECTORS, expand
from fewfire.sweeps.spec._run_spec import canonical
from fewfire.sweeps.spec._tables import check_keys, check_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fewfire._types import IdArray
    from fewfire.sweeps.spec._sweep import Sweep

WHOLE = ("data.samples", "network.width", "training.steps", "training.batch_size")
AXES = (*WHOLE, "training.learning_rate", "training.weight_decay", "training.truncation")
TEXTS = ("name", *VECTORS, *SEQUENCES)  # keys of [problem] that are no numbers
LONGEST = 1e9  # the largest high / low
FINENESS = 2  # values for every log(1 + precision), a half of the interval that is asked for


@dataclass(frozen=True)
class FrontierSearch:
    """What to look for along an axis of a sweep, for every combination of the others.

    Parameters
    ----------
    axis : str
        The key that is chosen, with its table: "data.samples", "training.steps", "network.width", "problem.n" …
    low, high : float
        The bracket; whole numbers stand for an axis of whole numbers.
    target : float
        The share of successes that is looked for.
    precision : float
        The interval may reach from m/(1 + precision) to m·(1 + precision).
    level : float
        The probability that the interval is to hold the frontier.
    budget : int
        Runs per frontier, at most.
    batch : int
        Runs per frontier and round: they are chosen together, so they can be trained side by side.
    rising : bool
        Whether success becomes more frequent along the axis, or less.
    """

    axis: str
    low: float
    high: float
    target: float = 0.5
    precision: float = 0.15
    level: float = 0.95
    budget: int = 200
    batch: int = 4
    rising: bool = True

    def __post_init__(self) -> None:
        axis: object = self.axis
        name, _, key = (text := axis if isinstance(axis, str) else "").partition(".")
        if text not in AXES and (name != "problem" or not key or key in TEXTS or "." in key):
            rule = f"must be a key that holds a number: {', '.join(AXES)}, or a number of the problem such as problem.n"
            raise invalid("search.axis", rule, axis, did_you_mean(axis, AXES) or "name the table and the key")
        check_number("search.low", self.low, 0.0, open_low=True, remedy="values are tried on a logarithmic scale")
        check_number("search.high", self.high)
        if not self.high > self.low:
            raise invalid("search.high", f"must be above low = {self.low:g}", self.high, "give the ends in order")
        if self.high > LONGEST * self.low:
            raise invalid("search.high", f"must be at most {LONGEST:g} times low = {self.low:g}", self.high)
        for name in ("low", "high"):
            if self.axis in WHOLE and not isinstance(getattr(self, name), int):
                rule = f"must be a whole number, because {self.axis} is one"
                raise invalid(f"search.{name}", rule, getattr(self, name), "write it without a point or an exponent")
        check_number("search.target", self.target, 0.05, 0.95, remedy="rarer and surer successes take a grid")
        check_number("search.precision", self.precision, 0.01, 1.0)
        check_number("search.level", self.level, 0.5, 0.999)
        check_integer("search.batch", self.batch, 1)
        check_integer("search.budget", self.budget, self.batch, remedy=f"one batch has {self.batch} runs")
        if not isinstance(self.rising, bool):
            raise invalid("search.rising", "must be true or false", self.rising)

    @classmethod
    def from_dict(cls, table: object) -> FrontierSearch:
        """The search of a concrete table."""
        known = check_table("search", table)
        check_keys("search", known, [field.name for field in fields(cls)], ("axis", "low", "high"))
        return cls(**known)

    def values(self) -> list[int] | list[float]:
        """What may be tried, ascending."""
        points = ceil(FINENESS * log(self.high / self.low) / log(1 + self.precision)) + 1
        return expand({"log": [self.low, self.high], "points": max(2, points)}, "search")

    def fill(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """The tables of a spec with the axis as a range of the values that may be tried."""
        name, key = self.axis.split(".")
        return {**tables, name: _filled(tables.get(name, {}), name, key, self.values())}

    def empty(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Lists of tables, as `Sweep.to_dict` writes them, without the axis: the inverse of `fill`."""
        name, key = self.axis.split(".")
        rests = {canonical(rest): rest for rest, _ in (_apart(table, self.axis, key) for table in tables[name])}
        return {**tables, name: list(rests.values())}

    def lines(self, sweep: Sweep) -> list[IdArray]:
        """For each frontier the cells of the sweep along the axis, as many as there are values."""
        name, key = self.axis.split(".")
        wanted, tables = self.values(), sweep.tables()
        members: dict[str, dict[float, int]] = {}
        for position, table in enumerate(tables[name]):
            rest, value = _apart(table, self.axis, key)
            members.setdefault(canonical(rest), {})[value] = position
        for found in members.values():
            if sorted(found) != wanted:
                rule = f"must take the {len(wanted)} values of the search in every combination"
                raise invalid(self.axis, rule, sorted(found)[:5], "make the sweep by Sweep.from_dict")
        sizes = [len(table) for table in tables.values()]
        cells = np.arange(int(np.prod(sizes))).reshape(sizes)
        at = list(tables).index(name)
        along = [[found[value] for value in wanted] for found in members.values()]
        others = [range(size) for position, size in enumerate(sizes) if position != at]
        moved = np.moveaxis(cells, at, -1)
        return sorted(
            (moved[choice][row] for choice in product(*others) for row in along), key=lambda line: int(line[0])
        )


def _filled(table: Any, path: str, key: str, values: list[Any]) -> Any:
    """A table, or each of a list of tables, with these values under the key."""
    if isinstance(table, list | tuple):
        return [_filled(member, f"{path}[{i}]", key, values) for i, member in enumerate(table)]
    known = dict(check_table(path, table))
    if path.startswith("training") and "phases" in known:
        phases = known["phases"]
        if not isinstance(phases, list | tuple) or len(phases) != 1:
            raise invalid(f"{path}.phases", "must be one phase where the search chooses its numbers", phases)
        return known | {"phases": [_filled(phases[0], f"{path}.phases[0]", key, values)]}
    if key in known:
        raise invalid(f"{path}.{key}", "must be left out, because [search] chooses it", known[key], "remove it")
    return known | {key: values}


def _apart(table: Mapping[str, Any], axis: str, key: str) -> tuple[dict[str, Any], Any]:
    """A table without the key of the axis, and its value."""
    if "phases" in table:
        first, *more = table["phases"]
        if more:
            raise invalid("training.phases", "must be one phase where the search chooses its numbers", len(more) + 1)
        rest, value = _apart(first, axis, key)
        return {**table, "phases": [rest]}, value
    if key not in table:
        raise invalid("search.axis", f"must be a key of its table, which has {', '.join(table)}", axis)
    return {name: entry for name, entry in table.items() if name != key}, table[key]
