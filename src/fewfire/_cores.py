"""How many cores this process may use, and how many threads a kernel gets."""

from __future__ import annotations

import os

from fewfire._validate import check_integer


def usable_cores() -> int:
    """The cores of this process's affinity mask, or all of the machine's where there is none."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """`threads`, or every core this process may run on."""
    if threads is None:
        return usable_cores()
    return check_integer("threads", threads, 1, 1024, "pass None for all cores")
