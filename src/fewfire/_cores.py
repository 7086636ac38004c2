"""How many cores this process may use, and how many threads a kernel gets."""

from __future__ import annotations

import os

import numpy as np

from fewfire._validate import check_integer


def usable_cores() -> int:
    """The cores of this process's affinity mask, or all of the machine's where there is none."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def job_count(n_jobs: int | None) -> int:
    """How many threads scikit-learn's `n_jobs` asks for: None is one, −1 every core, −2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, int | np.integer) and n_jobs < 0:
        return max(1, usable_cores() + 1 + int(n_jobs))
    return check_integer("n_jobs", n_jobs, 1, 1024, "pass a number of threads, or −1 for all cores")


def thread_count(threads: int | None) -> int:
    """`threads`, or every core this process may run on."""
    if threads is None:
        return usable_cores()
    return check_integer("threads", threads, 1, 1024, "pass None for all cores")
