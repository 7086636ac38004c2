"""How large a spec may be: everything is counted or measured here before anything is built from it.

The limits are far above what any sweep has asked for and far below what would fill a machine's memory while a spec is
read: a cell weighs about a kilobyte, a run of a cell a few bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid

if TYPE_CHECKING:
    from fewfire._errors import InvalidArgument
    from fewfire.engines import Schedule

RUNS = 10_000_000
CELLS = 1_000_000
VALUES = 100_000
"""What one table ([problem], [network] …) may stand for."""

DEPTH = 16
"""Tables and lists within each other; a spec has at most five."""

KEY = 200
FILE_BYTES = 16_000_000
INPUTS = 1_000_000
STEPS = 10**12
RECORDS = 1_000_000
"""Checkpoints of one run."""

FEWER = "list fewer values, or cut it into several sweeps"


def check_plain(value: object, path: str, depth: int = DEPTH) -> None:
    """Refuse what no run can hold: integers beyond int64, infinities, broken text, endless nesting."""
    if isinstance(value, Mapping | list | tuple):
        if not depth:
            raise invalid(path[:80], f"must not be nested deeper than {DEPTH}", "a deeper one", "write it flat")
        named = isinstance(value, Mapping)
        for key, member in value.items() if isinstance(value, Mapping) else enumerate(value):
            check_plain(key, path or "a key", depth)
            if isinstance(key, str) and len(key) > KEY:
                raise invalid(
                    path or "a key", f"must have keys of at most {KEY} characters", key, "write a shorter one"
                )
            check_plain(member, (f"{path}.{key}" if path else str(key)) if named else f"{path}[{key}]", depth - 1)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        got = f"an integer of {value.bit_length()} bits"  # its digits may be too many to be written
        raise invalid(path, "must be an integer of at least −2^63 and less than 2^63", got, "choose a smaller one")
    elif isinstance(value, float | np.floating) and not math.isfinite(value):
        raise invalid(path, "must be a finite number", float(value), "write one between −1.7e308 and 1.7e308")
    elif isinstance(value, str) and not _is_unicode(value):
        raise invalid(path, "must be Unicode text", value, "remove the lone surrogates")


def too_many(path: str, count: int, most: int, unit: str) -> InvalidArgument:
    """The error of a grid that is too large, with its size; raise what it returns."""
    return invalid(path, f"must stand for at most {most:,} {unit}", f"a grid of {count:,}", FEWER)


def check_work(schedule: Schedule, path: str) -> Schedule:
    """Refuse schedules that never end, or that record more than a store should hold."""
    if schedule.steps > STEPS:
        raise invalid(f"{path}.steps", f"must be at most {STEPS:,} in all phases together", schedule.steps)
    records = 0 if schedule.evaluate == "log" else schedule.steps // schedule.evaluate
    if records > RECORDS:
        rule = f"must be so large that a run of {schedule.steps:,} steps has at most {RECORDS:,} records"
        raise invalid(f"{path}.evaluate", rule, schedule.evaluate, 'choose a larger one, or "log"')
    return schedule


def check_size(sections: Mapping[str, int], trials: int) -> None:
    """Refuse a sweep of too many cells or runs; `sections` says how many values each table stands for."""
    cells = math.prod(sections.values())
    factors = " × ".join(f"{count:,} of {name}" for name, count in sections.items() if count > 1)
    if cells > CELLS:
        raise invalid("the spec", f"must stand for at most {CELLS:,} cells", f"a grid of {cells:,} ({factors})", FEWER)
    if cells * trials > RUNS:
        got = f"a grid of {cells * trials:,} ({cells:,} cells × {trials:,} trials)"
        raise invalid("the spec", f"must stand for at most {RUNS:,} runs", got, "ask for fewer trials or values")


def check_few_inputs(path: str, table: Mapping[str, Any]) -> None:
    """Refuse problems of so many inputs that trying one fills the memory."""
    for name in ("n", "m"):
        value = table.get(name)
        if isinstance(value, int) and value > INPUTS:
            raise invalid(f"{path}.{name}", f"must be at most {INPUTS:,}", value, "choose fewer inputs")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
