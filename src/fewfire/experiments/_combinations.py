"""Which parts of a sweep cannot go together, found before anything runs by making a tiny run of each kind."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from fewfire._errors import InvalidArgument
from fewfire.engines import Run

if TYPE_CHECKING:
    from fewfire.engines import Schedule
    from fewfire.experiments._sweep import Sweep


def check_combinations(sweep: Sweep) -> None:
    """Refuse combinations that cannot run: too sparse a start, a loss that does not fit the labels …"""
    online = {samples is None for samples, _ in sweep.data}
    # Starts may ask for pairs of neurons, so a small width of the same parity stands for the others.
    networks = dict.fromkeys((start, width if width < 6 else 4 + width % 2) for start, width in sweep.networks)
    schedules = [_short(schedule) for schedule in sweep.schedules]
    for problem in sweep.problems:
        X, y = problem.sample(8, 0)
        for (start, width), schedule, fresh in product(networks, schedules, online):
            data: dict[str, Any] = {"source": problem} if fresh else {"X": X, "y": y}
            try:
                Run(start(problem.inputs, width, 0), schedule, X_test=X, y_test=y, **data)
            except InvalidArgument as error:
                parts = f"{problem}, {start} and " + ("online data" if fresh else "a training set")
                raise InvalidArgument(f"the spec combines {parts}, which cannot run: {error}") from None


def _short(schedule: Schedule) -> Schedule:
    """The same rules for one step a phase."""
    return replace(schedule, phases=tuple(replace(phase, steps=1) for phase in schedule.phases))
