"""The process that is killed: imports once, then carries out each job in a child whose disk is `syscalls.c`.

Run by `faults.Victim`. A job comes as a line of JSON; the answer is a line of JSON with what the child reported (`told`), the
signal that ended it (`signal`) and how many calls it made (`calls`, unless it was killed).
"""

import ctypes
import json
import os
import sys
import traceback
from pathlib import Path

import numpy as np

from fewfire._errors import FewfireError
from fewfire.networks import TwoLayer
from fewfire.report import write_page
from fewfire.sweeps import SqliteStore, Sweep, export
from fewfire.testing._sweeps import made_up_measurement, made_up_row, tiny_table

disk = ctypes.CDLL(os.environ.get("FEWFIRE_TORTURE_DISK"))  # without it, nothing that is called here
BATCHES, SIZE = 5, 4
ROWS = [[made_up_row(SIZE * batch + i, width=5 + batch % 2) for i in range(SIZE)] for batch in range(BATCHES)]


def store(tell, path):
    """Add batch after batch; one that is refused is tried once more, as a person would."""
    with SqliteStore(path, write=True) as opened:
        for batch, rows in enumerate(ROWS):
            for _ in range(2):
                try:
                    opened.add(rows)
                    opened.add_measurements([made_up_measurement(batch)])
                except FewfireError as error:
                    tell("refused", str(error))
                else:
                    tell("kept", batch)
                    break


def sweep(tell, path):
    """A sweep of 16 runs in batches of 2."""
    from fewfire.engines import CpuEngine, ReferenceEngine

    for engine in (CpuEngine, ReferenceEngine):
        engine.batch_cost, engine.batch_runs = 1e18, 2
    Sweep.from_dict(tiny_table()).run(path, executor="inline", progress=lambda state: tell("kept", state.done))


def network(tell, path, seed):
    """Save a network."""
    net_of(seed).save(path)
    tell("kept", seed)


def net_of(seed):
    return TwoLayer(np.random.default_rng(seed).normal(size=(40, 30)), np.zeros(40), np.ones(40))


def page(tell, path, source):
    """Write the report of a store."""
    with SqliteStore(source) as opened:
        write_page(opened, path)
    tell("kept", 0)


def table(tell, path, source):
    """Export a store."""
    with SqliteStore(source) as opened:
        export(opened, path)
    tell("kept", 0)


JOBS = {job.__name__: job for job in (store, sweep, network, page, table)}


def carry_out(out, job, arguments, at, action, error, log):
    def tell(what, more=None):
        disk.note(json.dumps([what, more]).encode())
        os.write(out, json.dumps([what, more]).encode() + b"\n")

    if log is not None:
        disk.record(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    disk.arm(ctypes.c_long(at), action, error)
    try:
        JOBS[job](tell, **{name: Path(v) if isinstance(v, str) else v for name, v in arguments.items()})
    except (FewfireError, FileNotFoundError) as failed:
        tell("refused", str(failed))
    except OSError as failed:  # of `save`, with the system's text
        tell("refused" if job == "network" else "raw", str(failed))
    except BaseException:
        tell("raw", traceback.format_exc())
    calls = disk.seen()
    disk.arm(ctypes.c_long(-1), 0, 0)
    tell("calls", calls)


def main():
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                carry_out(writing, **order)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told = [json.loads(text) for text in pipe]
        _, status = os.waitpid(child, 0)
        print(json.dumps({"told": told, "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}), flush=True)


if __name__ == "__main__":
    main()
