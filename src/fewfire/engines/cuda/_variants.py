"""Which kernel serves a run, and what of it the device draws itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.engines._run import Start
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._batch import KernelVariant
from fewfire.engines.cuda._layouts import GENERAL, choose_layout
from fewfire.engines.cuda._same import told
from fewfire.engines.cuda._schedules import ScheduleTables

if TYPE_CHECKING:
    from fewfire._cuda import Device
    from fewfire.engines._run import Run, Source


def variant_of(run: Run, device: Device) -> KernelVariant:
    """What a run is served by."""
    schedule, network = run.schedule, run.network
    plain = draws_start(network) if isinstance(network, Start) else network.activation.name == "relu"
    sources = [run.source, *(sample.problem for sample in (run.sample, run.test) if sample is not None)]
    plain = plain and all(source is None or draws(source) for source in sources)
    signs = all(
        table is None or (table.dtype == np.int8 and bool(np.all(np.abs(table) == 1)) and bool(np.all(np.abs(y) == 1)))
        for table, y in ((run.X, run.y), (run.X_test, run.y_test))
        if y is not None
    )
    fast = ScheduleTables.of(schedule).fast and schedule.loss in ("hinge", "absolute", "logistic")
    if not (plain and signs and fast):
        return KernelVariant(GENERAL)
    layout = choose_layout(run.inputs, run.width, device, whole_slopes=schedule.loss != "logistic")
    return KernelVariant(layout, schedule.loss, run.source is not None) if layout.fast else KernelVariant(GENERAL)


def draws(source: Source) -> bool:
    """Whether the device draws the examples of a source."""
    description, _ = told(source)
    return description is not None and description.get("name") in records.PROBLEMS


def draws_start(start: Start) -> bool:
    """Whether the device draws the weights of a start."""
    if start.init.name == "sparse":
        ones = start.init.parameters()["s"]
        return isinstance(ones, int) and ones <= min(records.MOST_ONES, start.inputs)
    return start.init.name == "dense"
