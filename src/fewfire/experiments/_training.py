"""How runs are trained, in a spec: the keys of `[training]`, to a `Schedule` and back.

One phase of SGD is written flat (`steps`, `learning_rate`, …); several are a list of such tables under `phases`.
Rates, decays and truncations are numbers, or tables of numbers a layer: `{hidden = 0.1, output = 0.01}`.
`batch_size = "full"` is gradient descent on the whole training set.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number
from fewfire.engines import LAYERS, LOSSES, PerLayer, Phase, Schedule
from fewfire.experiments._keys import at, check_keys, check_name, check_table, join

PHASE_KEYS = tuple(field.name for field in fields(Phase))
SCHEDULE_KEYS = ("loss", "sampling", "evaluate", "stop_error")
_PER_LAYER = ("learning_rate", "weight_decay", "truncation")


def parse_training(value: object, path: str = "training") -> Schedule:
    """The schedule that a concrete table describes."""
    table = {key: entry for key, entry in check_table(path, value).items() if entry is not None}
    check_keys(path, table, (*PHASE_KEYS, "phases", *SCHEDULE_KEYS))
    flat = {key: table[key] for key in PHASE_KEYS if key in table}
    if "phases" in table and flat:
        raise invalid(path, "must have either phases or the keys of one phase", sorted(flat), "move them into phases")
    if "loss" in table:
        check_name(join(path, "loss"), table["loss"], LOSSES)
    if "phases" in table:
        phases = tuple(_phase(phase, f"{path}.phases[{i}]") for i, phase in enumerate(table["phases"]))
    else:
        phases = (_phase(flat, path),)
    with at(path):
        return Schedule(phases, **{key: table[key] for key in SCHEDULE_KEYS if key in table})


def plain_training(schedule: Schedule) -> dict[str, Any]:
    """The table of a schedule, with every key; numbers of one kind always look the same."""
    return {
        "phases": [_plain_phase(phase) for phase in schedule.phases],
        "loss": schedule.loss,
        "sampling": schedule.sampling,
        "evaluate": schedule.evaluate if schedule.evaluate == "log" else int(schedule.evaluate),
        "stop_error": None if schedule.stop_error is None else float(schedule.stop_error),
    }


def _phase(value: object, path: str) -> Phase:
    table = dict(check_table(path, value))
    check_keys(path, table, PHASE_KEYS, ("steps",))
    check_integer(join(path, "steps"), table["steps"], 1)
    if "batch_size" in table:
        size = table["batch_size"]
        if isinstance(size, str) and size != "full":
            raise invalid(join(path, "batch_size"), 'must be a number of examples or "full"', size)
        table["batch_size"] = None if size == "full" else size
    for name in _PER_LAYER:
        if name in table:
            table[name] = _per_layer(table[name], join(path, name))
    with at(path):
        return Phase(**table)


def _per_layer(value: object, path: str) -> float | PerLayer:
    if not isinstance(value, dict):
        return check_number(path, value)
    check_keys(path, value, LAYERS)
    return PerLayer(**{layer: check_number(join(path, layer), number) for layer, number in value.items()})


def _plain_phase(phase: Phase) -> dict[str, Any]:
    rates = {name: _plain_value(getattr(phase, name), name) for name in _PER_LAYER}
    size = "full" if phase.batch_size is None else int(phase.batch_size)
    return {"steps": int(phase.steps), **rates, "decay": phase.decay, "batch_size": size}


def _plain_value(value: Any, name: str) -> float | dict[str, float]:
    if isinstance(value, PerLayer):
        return {layer: check_number(join(name, layer), getattr(value, layer)) + 0.0 for layer in LAYERS}
    return check_number(name, value) + 0.0  # −0.0 and 0.0 are one number
