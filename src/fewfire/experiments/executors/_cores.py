"""How many cores this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """The cores of this process's affinity mask, or all of the machine's where there is none."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
