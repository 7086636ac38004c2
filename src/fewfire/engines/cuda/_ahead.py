"""Machine code that is compiled ahead, in threads beside each other, while other kernels train.

NVRTC takes seconds per kernel and lets Python run meanwhile; a sweep over shapes needs dozens. Whoever needs the code
of a kernel that is being compiled waits for it, and may be interrupted.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import TypeAlias

from fewfire._cores import usable_cores
from fewfire._cuda import KernelSource, compiled

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
            # Nobody waits for these threads when the program ends.
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
