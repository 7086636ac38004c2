"""Where a run was made: versions and machine, recorded with every row."""

from __future__ import annotations

import json
import os
import platform
import socket
from functools import cache

import numpy as np

from fewfire import __version__
from fewfire._extension import load


@cache
def environment_text() -> str:
    """JSON with sorted keys: fewfire, python, numpy, system, machine, host, cores, instruction set."""
    core = load()
    return json.dumps(
        {
            "fewfire": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "system": platform.system(),
            "machine": platform.machine(),
            "host": socket.gethostname(),
            "cores": os.cpu_count(),
            "instructions": "none" if core is None else core.isa(),
        },
        sort_keys=True,
    )
