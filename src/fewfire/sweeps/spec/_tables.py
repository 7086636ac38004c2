"""The tables of a spec: their keys and sizes checked, and problems and schedules read from them and written back.

Errors name the path of the key, such as `training.learning_rate`, and list the choices. A problem is a name and the
fields of its class. Of `[training]`, one phase of SGD is written flat (`steps`, `learning_rate`, …); several are a list
of such tables under `phases`. Rates, decays and truncations are numbers, or tables of numbers per layer:
`{hidden = 0.1, output = 0.01}`. `batch_size = "full"` is gradient descent on the whole training set.

Everything is counted or measured before anything is built from it. The limits are far above what any sweep has asked
for and far below what would fill a machine's memory while a spec is read: a cell takes about a kilobyte, a run of a
cell a few bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from fewfire._dense.losses import LossName
from fewfire._errors import InvalidArgument, invalid
from fewfire._validate import check_choice, check_integer, check_number, did_you_mean
from fewfire.engines import PerLayer, Phase, Schedule
from fewfire.engines._run import LAYERS
from fewfire.problems import Problem
from fewfire.problems._base import PROBLEMS

RUNS = 10_000_000
CELLS = 1_000_000
VALUES = 100_000  # what one table ([problem], [network] …) may stand for
DEPTH = 16  # tables and lists within each other; a spec has at most five
KEY = 200
FILE_BYTES = 16_000_000
INPUTS = 1_000_000
STEPS = 10**12
RECORDS = 1_000_000  # checkpoints of one run
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
                rule = f"must have keys of at most {KEY} characters"
                raise invalid(path or "a key", rule, key, "write a shorter one")
            check_plain(member, (f"{path}.{key}" if path else str(key)) if named else f"{path}[{key}]", depth - 1)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        got = f"an integer of {value.bit_length()} bits"  # its digits may be too many to be written
        raise invalid(path, "must be an integer of at least −2^63 and less than 2^63", got, "choose a smaller one")
    elif isinstance(value, float | np.floating) and not math.isfinite(value):
        raise invalid(path, "must be a finite number", float(value), "write one between −1.7e308 and 1.7e308")
    elif isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise invalid(path, "must be Unicode text", value, "remove the lone surrogates")


def check_work(schedule: Schedule) -> Schedule:
    """Refuse schedules that never end, or that record more than a store should hold."""
    if schedule.steps > STEPS:
        raise invalid("training.steps", f"must be at most {STEPS:,} in all phases together", schedule.steps)
    records = 0 if schedule.evaluate == "log" else schedule.steps // schedule.evaluate
    if records > RECORDS:
        rule = f"must be so large that a run of {schedule.steps:,} steps has at most {RECORDS:,} records"
        raise invalid("training.evaluate", rule, schedule.evaluate, 'choose a larger one, or "log"')
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


PHASE_KEYS = tuple(field.name for field in fields(Phase))
SCHEDULE_KEYS = ("loss", "sampling", "evaluate", "stop_error", "optimiser", "momentum")
_PER_LAYER = ("learning_rate", "weight_decay", "truncation")


def check_table(path: str, value: object) -> Mapping[str, Any]:
    """A table of keys and values."""
    if not isinstance(value, dict):
        raise invalid(path, "must be a table", value, "" if " " in path else f"write it under [{path}]")
    return value


def check_keys(path: str, table: Mapping[str, Any], known: Iterable[str], required: Iterable[str] = ()) -> None:
    """Refuse keys that mean nothing, with the nearest one that does, and tables that lack a needed key."""
    names = list(known)
    for key in table:
        if key not in names:
            rule = f"is not a known key; the keys here are {', '.join(names)}"
            raise invalid(join(path, key), rule, table[key], did_you_mean(key, names) or "remove it")
    check_given(path, table, required)


def check_given(path: str, table: Mapping[str, Any], required: Iterable[str]) -> None:
    """Refuse tables that lack a needed key."""
    for key in required:
        if key not in table:
            where = f"[{path}]" if path else "the spec"
            raise invalid(join(path, key), "must be given", "a table without it", f"add {key} = … to {where}")


def join(path: str, key: str) -> str:
    """The path of a key of the table at `path`."""
    return f"{path}.{key}" if path else key


@contextmanager
def at(path: str) -> Iterator[None]:
    """Prefix errors about arguments with the path of the table that they came from."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}.{error}") from None


def parse_problem(value: object, path: str = "problem") -> Problem:
    """The problem that a concrete table describes."""
    table = dict(check_table(path, value))
    check_given(path, table, ("name",))
    kind = PROBLEMS[check_choice(f"{path}.name", table.pop("name"), PROBLEMS)]
    check_keys(path, table, [field.name for field in fields(kind)])
    for name in ("n", "m"):  # trying a problem of more inputs fills the memory
        inputs = table.get(name)
        if isinstance(inputs, int) and inputs > INPUTS:
            raise invalid(f"{path}.{name}", f"must be at most {INPUTS:,}", inputs, "choose fewer inputs")
    try:
        with at(path):
            problem: Problem = kind(**table)
    except TypeError as error:  # a field without default is missing
        takes = ", ".join(field.name for field in fields(kind))
        raise invalid(path, f"takes {takes}", sorted(table), str(error).split("__init__() ")[-1]) from None
    return problem


def plain_problem(problem: Problem) -> dict[str, Any]:
    """The table of a problem, with every field."""
    if type(problem) not in PROBLEMS.values():
        raise invalid("problem", f"must be one of {', '.join(PROBLEMS)}", problem, "a spec holds plain values only")
    described: Any = problem
    table: dict[str, Any] = described.describe()
    return table


def parse_training(value: object, path: str = "training") -> Schedule:
    """The schedule that a concrete table describes."""
    table = {key: entry for key, entry in check_table(path, value).items() if entry is not None}
    check_keys(path, table, (*PHASE_KEYS, "phases", *SCHEDULE_KEYS))
    flat = {key: table[key] for key in PHASE_KEYS if key in table}
    if "phases" in table and flat:
        raise invalid(path, "must have either phases or the keys of one phase", sorted(flat), "move them into phases")
    if "loss" in table:
        check_choice(join(path, "loss"), table["loss"], get_args(LossName))
    if "phases" in table:
        if not isinstance(table["phases"], list | tuple):
            raise invalid(join(path, "phases"), "must be a list of tables", table["phases"], "write [{steps = 100}]")
        phases = tuple(_phase(phase, f"{path}.phases[{i}]") for i, phase in enumerate(table["phases"]))
    else:
        phases = (_phase(flat, path),)
    with at(path):
        return Schedule(phases, **{key: table[key] for key in SCHEDULE_KEYS if key in table})


def plain_training(schedule: Schedule) -> dict[str, Any]:
    """The table of a schedule, with every key but those of the optimiser where it is plain SGD."""
    optimiser: dict[str, Any] = {} if schedule.plain else {"optimiser": schedule.optimiser}
    if schedule.momentum:
        optimiser["momentum"] = schedule.momentum
    return {
        **optimiser,
        "phases": [_plain_phase(phase) for phase in schedule.phases],
        "loss": schedule.loss,
        "sampling": schedule.sampling,
        "evaluate": schedule.evaluate if schedule.evaluate == "log" else int(schedule.evaluate),
        "stop_error": None if schedule.stop_error is None else float(schedule.stop_error),
    }


def _phase(value: object, path: str) -> Phase:
    table = dict(check_table(path, value))
    check_keys(path, table, PHASE_KEYS, () if "epochs" in table else ("steps",))
    if "steps" in table:
        check_integer(join(path, "steps"), table["steps"], 1)
    if "batch_size" in table:
        size = table["batch_size"]
        if isinstance(size, str) and size != "full":
            raise invalid(join(path, "batch_size"), 'must be a number of examples or "full"', size)
        table["batch_size"] = None if size == "full" else size
    for name in _PER_LAYER:
        if name in table:
            where, value = join(path, name), table[name]
            if isinstance(value, dict):
                check_keys(where, value, LAYERS)
                table[name] = PerLayer(**{layer: check_number(join(where, layer), x) for layer, x in value.items()})
            else:
                table[name] = check_number(where, value)
    with at(path):
        return Phase(**table)


def _plain_phase(phase: Phase) -> dict[str, Any]:
    rates = {name: _plain_value(getattr(phase, name), name) for name in _PER_LAYER}
    size = "full" if phase.batch_size is None else int(phase.batch_size)
    length = {"steps": int(phase.steps)} if phase.epochs is None else {"epochs": int(phase.epochs)}
    return {**length, **rates, "decay": phase.decay, "batch_size": size}


def _plain_value(value: Any, name: str) -> float | dict[str, float]:
    if isinstance(value, PerLayer):
        return {layer: check_number(join(name, layer), getattr(value, layer)) + 0.0 for layer in LAYERS}
    return check_number(name, value) + 0.0  # −0.0 and 0.0 are one number
