"""A process that runs recipes one after another: tasks in JSON are the lines of its input.

After the text of each recipe it writes `ENDED` and a status that says whether all claims held. What is imported stays
imported, which would otherwise take two seconds per recipe. Its input ends when the parent has no further task or is
gone, however that happened; it then leaves at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from queue import SimpleQueue

from fewfire._errors import FewfireError
from fewfire.cli._output import complain, never_fail_to_encode
from fewfire.cli._side_by_side import CORES, ENDED, RecipeTask
from fewfire.cli.reproduce import run_task

STOPPED = 130


def main() -> int:
    """Run what the parent asks for until it is gone; Ctrl-C ends it earlier."""
    cores = [int(core) for core in os.environ.pop(CORES, "").split(",") if core]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    tasks: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(tasks,), daemon=True).start()
    never_fail_to_encode()
    try:
        while True:
            status = _run(RecipeTask(**json.loads(tasks.get())))
            sys.stderr.flush()
            sys.stdout.flush()
            os.write(1, ENDED + b"%d\n" % status)
    except KeyboardInterrupt:
        return STOPPED


def _run(task: RecipeTask) -> int:
    """0 where all claims held, 1 where one failed, 2 for an error that is told."""
    try:
        return 0 if run_task(task) else 1
    except FewfireError as error:
        complain(str(error))
    except Exception:
        traceback.print_exc()
    return 2


def _receive(tasks: SimpleQueue[bytes]) -> None:
    """Lines of the input, as they come."""
    rest = b""
    while read := os.read(0, 1 << 16):  # not through sys.stdin, whose lock would be held when the interpreter ends
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            tasks.put(line)
    os._exit(STOPPED)


if __name__ == "__main__":
    sys.exit(main())
