"""Lists mean grids: one table of a spec stands for every combination of its listed values.

* a scalar stands for itself;
* a list stands for each of its members;
* `{log = [10, 1000], points = 5}` and `{linear = [0, 1], points = 3}` are ranges;
* a table stands for every combination of what its values stand for;
* `support`, `table`, `secret`, `weights`, `coefficients` and `widths` are vectors: a list of numbers is one value, a
  list of lists a grid; `sets` holds vectors, so a list of lists is one value;
* `phases` is a sequence: one choice for each phase, in order.

Ranges between integers give integers, rounded and without repeats; others are rounded to 12 digits, so that the
last bit of a machine's logarithm does not change the hash of a run. What a value stands for is counted before it is
built.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.sweeps.spec._tables import FEWER, VALUES, check_keys, join

VECTORS = {"support": 1, "table": 1, "secret": 1, "weights": 1, "coefficients": 1, "widths": 1, "sets": 2}
"""Keys whose value is a list, and how deep it is."""
SEQUENCES = ("phases",)
RANGES = ("log", "linear")


def expand(value: Any, path: str) -> list[Any]:
    """Every concrete value that a value of a spec stands for; refused, with the count, where they are too many."""
    count = _count(value)
    if count > VALUES:
        raise invalid(path, f"must stand for at most {VALUES:,} values", f"a grid of {count:,}", FEWER)
    return _expand(value, path)


def _count(value: Any, key: str = "") -> int:
    """How many values `_expand` would build; whatever it refuses counts as little as it costs to find out."""
    if isinstance(value, dict):
        if any(name in value for name in RANGES):
            points = value.get("points")
            return points if isinstance(points, int) else 1
        return math.prod(_count(member, name) for name, member in value.items())
    if not isinstance(value, list | tuple) or _depth(value) <= VECTORS.get(key, 0):
        return 1
    if key in VECTORS:
        return len(value)
    counts = [_count(member) for member in value]
    return math.prod(counts) if key in SEQUENCES else sum(counts)


def _expand(value: Any, path: str, key: str = "") -> list[Any]:
    if isinstance(value, dict):
        if any(name in value for name in RANGES):
            return _range(value, path)
        axes = [_expand(member, join(path, name), name) for name, member in value.items()]
        return [dict(zip(value, choice, strict=True)) for choice in product(*axes)]
    if not isinstance(value, list | tuple):
        return [value]
    if not value:
        raise invalid(path, "must not be an empty list", value, "list at least one value, or leave the key out")
    if _depth(value) <= VECTORS.get(key, 0):
        return [tuple(value)]
    if key in VECTORS:
        return [tuple(member) if isinstance(member, list) else member for member in value]
    members = [_expand(member, f"{path}[{i}]") for i, member in enumerate(value)]
    if key in SEQUENCES:
        return [tuple(choice) for choice in product(*members)]
    return [concrete for choices in members for concrete in choices]


def _depth(value: Any) -> int:
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list | tuple) else 0


def _range(table: Mapping[str, Any], path: str) -> list[int] | list[float]:
    kind = next(name for name in RANGES if name in table)
    check_keys(path, table, (kind, "points"), (kind, "points"))
    ends, points = table[kind], check_integer(join(path, "points"), table["points"], 2)
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise invalid(join(path, kind), "must be [first, last]", ends, "list the two ends of the range")
    first, last = (check_number(f"{path}.{kind}[{i}]", end) for i, end in enumerate(ends))
    if kind == "log" and min(first, last) <= 0:
        raise invalid(join(path, kind), "must have positive ends", list(ends), "use linear for ranges that reach 0")
    space = np.geomspace if kind == "log" else np.linspace
    with np.errstate(all="ignore"):  # what leaves the floats is refused below
        grid = [float(f"{number:.12g}") for number in space(first, last, points).tolist()]
    if not all(map(math.isfinite, grid)):
        raise invalid(join(path, kind), "must be a range within the floats", list(ends), "choose ends nearer to 0")
    if all(isinstance(end, int) for end in ends):
        return list(dict.fromkeys(round(number) for number in grid))
    return list(dict.fromkeys(grid))
