"""The process of one recipe among several: the task in JSON is its argument, its status says whether all claims held.

Its standard input ends when the parent is gone, however that happened; it then leaves at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading

from fewfire._errors import FewfireError
from fewfire.cli._output import complain, never_fail_to_encode
from fewfire.cli._side_by_side import CORES, RecipeTask
from fewfire.cli.reproduce import run_task

STOPPED = 130


def main() -> int:
    """0 where all claims held, 1 where one failed, 2 for an error that is told."""
    cores = [int(core) for core in os.environ.pop(CORES, "").split(",") if core]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    never_fail_to_encode()
    try:
        return 0 if run_task(RecipeTask(**json.loads(sys.argv[1]))) else 1
    except FewfireError as error:
        complain(str(error))
        return 2
    except KeyboardInterrupt:
        return STOPPED


def _leave_with_parent() -> None:
    while os.read(0, 1):  # not through sys.stdin, whose lock would be held when the interpreter ends
        pass
    os._exit(STOPPED)


if __name__ == "__main__":
    sys.exit(main())
