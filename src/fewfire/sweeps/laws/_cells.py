"""Cells of sweeps of parities, with time: how many of a cell's runs had succeeded after so many steps.

A run that stops at its success records when that was, so one sweep to T steps holds the sweeps to every smaller number
of steps as well. Laws are fitted to these counts. Those of the sweeps that `diagnose` stands on lie next to this file:
three tables, written and read by `tools/laws.py`, and `calibration.json` about their origin.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_number
from fewfire.sweeps.spec._tables import parse_training
from fewfire.sweeps.store._protocol import Store, newest_success_error
from fewfire.sweeps.store._row import final, succeeded

GRID = (
    *(125, 250, 375, 500, 750, 1000, 1500, 2000, 3000, 4000, 6000, 8000, 12_000, 16_000, 24_000, 32_000),
    *(48_000, 64_000, 100_000),
)
"""Steps after which successes are counted, where runs were evaluated then."""


@dataclass(frozen=True)
class ParityCell:
    """The runs of one width, start and number of examples (None: online) on an (n, k)-parity.

    `start` is as `start_label` writes it. `steps` ascend; the last is that of the sweep, or its last one on `GRID`.
    `successes` are the runs that had succeeded by then.
    """

    n: int
    k: int
    start: str
    width: int
    samples: int | None
    runs: int
    steps: tuple[int, ...]
    successes: tuple[int, ...]

    def at(self, steps: int) -> int | None:
        """Successes within so many steps; None where that was not evaluated."""
        return dict(zip(self.steps, self.successes, strict=True)).get(steps)

    @property
    def line(self) -> tuple[int, int, str, int]:
        """What cells share that differ in the number of examples alone."""
        return self.n, self.k, self.start, self.width


def start_label(start: dict[str, Any]) -> str:
    """A start in a word: "dense", "sparse(2)", or its name and parameters."""
    name, rest = start["name"], {key: value for key, value in start.items() if key != "name"}
    if name == "sparse" and rest.get("value", 1.0) == 1.0:
        rest.pop("value", None)
        return f"sparse({rest['s']})"
    return name if not rest else f"{name}({', '.join(f'{key}={value}' for key, value in sorted(rest.items()))})"


def start_of(init: str) -> str:
    """The label of a start as it is asked for: "sparse" alone is two inputs per neuron."""
    return "sparse(2)" if init == "sparse" else init


def parity_cells(store: Store, success_error: float | None = None) -> list[ParityCell]:
    """The cells of a store's noiseless parities, in order of the settings.

    Parameters
    ----------
    store : Store
    success_error : float, optional
        The test error that counts as success; by default that of the store's last sweep, or 0.1.

    Raises
    ------
    InvalidArgument
        When runs differ in more than n, k, start, width, samples and steps: a law is one of a schedule. When runs stop
        before the success error.

    Examples
    --------
    >>> from fewfire.sweeps import SqliteStore
    >>> from fewfire.sweeps.laws import parity_cells
    >>> cells = parity_cells(SqliteStore("grid.sqlite"))  # as the README's first sweep writes it
    >>> len(cells), cells[0].width, cells[0].samples
    (30, 10, 350)
    """
    error = newest_success_error(store.sweeps()) if success_error is None else success_error
    check_number("success_error", error, 0.0, 1.0, open_high=True, remedy="pass 0.1 for 10%")
    columns, found, schedules = store.columns(), [], set()
    ended, good = final(columns["status"]), succeeded(columns["status"], columns["best_test_error"], error)
    for setting in store.settings():
        problem, training, chosen = setting.problem, setting.training, (columns["setting"] == setting.id) & ended
        plain = problem["name"] == "parity" and not problem.get("noise") and len(training["phases"]) == 1
        plain = plain and set(setting.layers) == {"width"} and "epochs" not in training["phases"][0]
        if not plain or not chosen.any():
            continue
        (phase,) = training["phases"]
        schedules.add(json.dumps({**phase, "steps": 0, "loss": training["loss"], "sampling": training["sampling"]}))
        if len(schedules) > 1:
            rule = "must hold one schedule, steps apart"
            raise invalid("store", rule, sorted(schedules), "fit each in its own store")
        stop = training["stop_error"]
        if stop is not None and stop > error:
            why = "at which these runs stop: whether they would have gone on to it is unknown"
            raise invalid("success_error", f"must be at least {stop:g}, {why}", error, f"pass {stop:g}")
        # A run that stops at the error records when it got there; one that does not, only whether it did.
        times = np.where(good[chosen], columns["steps"][chosen] if stop == error else phase["steps"], np.inf)
        evaluated = _evaluated_at(json.dumps(training)) if stop == error else ()
        steps = (*(t for t in GRID if t in evaluated and t < phase["steps"]), phase["steps"])
        counts = tuple(int((times <= t).sum()) for t in steps)
        key = (problem["n"], problem["k"], start_label(setting.start), setting.width, setting.samples)
        found.append(ParityCell(*key, int(chosen.sum()), steps, counts))
    return found


@lru_cache(maxsize=256)
def _evaluated_at(training: str) -> frozenset[int]:
    """The steps after which runs of a schedule are evaluated."""
    return frozenset(parse_training(json.loads(training)).checkpoints())


def merged_cells(cells: Iterable[ParityCell]) -> list[ParityCell]:
    """Cells that agree in n, k, start, width and samples as one, where they have steps in common; sorted."""
    groups: dict[tuple[int, int, str, int, int | None], list[ParityCell]] = {}
    for cell in cells:
        groups.setdefault((*cell.line, cell.samples), []).append(cell)
    found = []
    for (n, k, start, width, samples), members in groups.items():
        steps = sorted(set.intersection(*(set(cell.steps) for cell in members)))
        counts = tuple(sum(cell.at(t) or 0 for cell in members) for t in steps)
        runs = sum(cell.runs for cell in members)
        one = ParityCell(n, k, start, width, samples, runs, tuple(steps), counts)
        found.extend([one] if steps else members)
    return sorted(found, key=lambda cell: (*cell.line, cell.samples or np.inf))
