"""Which kernel serves a run, what of it the device draws itself, and machine code that is compiled ahead.

NVRTC takes seconds per kernel and lets Python run meanwhile; a sweep over shapes needs dozens, so they are compiled in
threads while other kernels train. A caller that needs code that is being compiled waits for it, and may be interrupted.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fewfire._cuda._compile import KernelSource, compiled
from fewfire._cuda._device import Device
from fewfire._threads import usable_cores
from fewfire.engines._gradients import LOSSES
from fewfire.engines._run import Run, Source, Start
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._layouts import GENERAL, KernelLayout, choose_layout
from fewfire.engines.cuda._shared import ScheduleTables, description_of

KERNELS = KernelSource(Path(__file__).parent)

Definitions: TypeAlias = tuple[tuple[str, int], ...]

_lock = threading.Lock()
_known: dict[tuple[str, int, Definitions], Future[bytes]] = {}
_seats = threading.BoundedSemaphore(usable_cores())


def compile_ahead(file: str, architecture: int, definitions: Definitions = ()) -> Future[bytes]:
    """The code to come; compiling begins as soon as a core is free for it."""
    key = (file, architecture, definitions)
    with _lock:
        future = _known.get(key)
        if future is None or (future.done() and future.exception() is not None):
            _known[key] = future = Future()
            # A daemon: the program does not wait for it at its end.
            thread = threading.Thread(target=_compile, args=(future, *key), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads: compiled here and now
                _compile(future, *key)
    return future


def machine_code(file: str, architecture: int, definitions: Definitions = ()) -> bytes:
    """The code of a kernel."""
    return compile_ahead(file, architecture, definitions).result()


def _compile(future: Future[bytes], file: str, architecture: int, definitions: Definitions) -> None:
    with _seats:
        try:
            future.set_result(compiled(KERNELS, file, architecture, dict(definitions)))
        except BaseException as error:
            future.set_exception(error)


@dataclass(frozen=True)
class KernelVariant:
    """What a kernel is compiled for: a layout and, unless it is the general one, loss and source."""

    layout: KernelLayout
    loss: str = "hinge"
    online: bool = False

    def source(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        """Its file, and what that is compiled with."""
        if not self.layout.fast:
            return "general.cu", ()
        return "stream.cu" if self.layout.streamed else "resident.cu", tuple(self.definitions().items())

    def definitions(self) -> dict[str, int]:
        """What the resident and the streaming kernel are compiled with."""
        return {
            **self.layout.definitions(),
            "LOSS": list(LOSSES).index(self.loss),
            "ONLINE": int(self.online),
            "SPLIT_SLOPES": int(self.loss == "logistic"),
        }


def variant_of(run: Run, device: Device) -> KernelVariant:
    """The kernel that serves a run."""
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
    description, _ = description_of(source)
    return description is not None and description.get("name") in records.PROBLEMS


def draws_start(start: Start) -> bool:
    """Whether the device draws the weights of a start."""
    if start.init.name == "sparse":
        ones = start.init.parameters()["s"]
        return isinstance(ones, int) and ones <= min(records.MOST_ONES, start.inputs)
    return start.init.name == "dense"
