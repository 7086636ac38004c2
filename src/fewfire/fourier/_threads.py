"""How many threads a kernel may use."""

from __future__ import annotations

import os

from fewfire._validate import check_integer


def thread_count(threads: int | None) -> int:
    """`threads`, or every core this process may run on."""
    if threads is not None:
        return check_integer("threads", threads, 1, 1024, "pass None for all cores")
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
