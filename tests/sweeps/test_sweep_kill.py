"""A sweep that is killed again and again ends in the same store as one that was left in peace, row by row."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fewfire._errors import FewfireError
from fewfire.sweeps import MemoryStore, SqliteStore, Sweep
from fewfire.testing._sweeps import outcomes

SPEC = {
    "problem": {"name": "parity", "n": 10, "k": 2},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [10, 20]},
    "data": {"samples": [50, "online"], "test_samples": 100},
    "training": {"steps": 3000, "learning_rate": 0.1, "evaluate": 100},
    "trials": 15,
}

# Batches of two runs, so that there is something to interrupt; slowed down so that kills come in the middle, however
# long this process has to wait for a core.
SCRIPT = """
import json, sys, time
from fewfire.engines import CpuEngine, ReferenceEngine
from fewfire.sweeps import Sweep
for engine in (CpuEngine, ReferenceEngine):
    engine.batch_cost, engine.batch_runs = 1e18, 2
Sweep.from_dict(json.loads(sys.argv[1])).run(
    sys.argv[2], executor=sys.argv[3], workers=2, progress=lambda state: time.sleep(float(sys.argv[4])))
"""


def start(path, executor, pause=0.2):
    command = [sys.executable, "-c", SCRIPT, json.dumps(SPEC), str(path), executor, str(pause)]
    return subprocess.Popen(command)


def rows_in(path):
    try:
        with SqliteStore(path) as store:
            return sum(store.counts().values())
    except FewfireError:
        return 0  # not made yet


def offspring(pid):
    """The processes that `pid` has started."""
    return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat")
            if _field(stat, 1) == str(pid) and _field(stat, 0) != "Z"]  # fmt: skip


def _field(stat, number):
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[number]
    except OSError:
        return ""


def wait_for(condition, seconds=60):
    """Poll; a test that waits in vain fails with its condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.002)


@pytest.mark.parametrize("executor", ["inline", "processes"])
@pytest.mark.usefixtures("core")
def test_killed_repeatedly(tmp_path, executor):
    path, whole, kills = tmp_path / "runs.sqlite", Sweep.from_dict(SPEC), 0
    try:
        for pause in (0.0, 0.003, 0.007, 0.013):
            before = rows_in(path)
            process = start(path, executor)
            wait_for(lambda before=before, process=process: rows_in(path) >= before + 6 or process.poll() is not None)
            time.sleep(pause)  # another moment of the cycle each time: training, handing over, writing
            workers = offspring(process.pid)
            kills += process.poll() is None
            process.kill()
            assert process.wait() in (-signal.SIGKILL, 0)
            kept = rows_in(path)
            assert kept >= before + 6 or kept == len(whole)
            wait_for(
                lambda workers=workers: (
                    not any(
                        Path(f"/proc/{pid}").exists() and _field(Path(f"/proc/{pid}/stat"), 0) != "Z" for pid in workers
                    )
                )
            )
        assert kills == 4 and rows_in(path) < len(whole)
        process = start(path, executor, pause=0)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        process.wait()
    undisturbed = MemoryStore()
    whole.run(undisturbed, executor="inline")
    with SqliteStore(path) as store:
        assert outcomes(store) == outcomes(undisturbed)
        assert store.counts() == {"done": len(whole), "diverged": 0, "failed": 0}
        assert next(store._read("PRAGMA integrity_check")) == ("ok",)
        assert next(store._read("SELECT count(*) FROM histories")) == (len(whole),)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("core")
def test_ctrl_c_and_sigterm_print_how_to_resume(tmp_path):
    spec, path = tmp_path / "spec.toml", tmp_path / "runs.sqlite"
    spec.write_text('trials = 2000\n[problem]\nname = "parity"\nn = 10\nk = 2\n[network]\nstart = "dense"\nwidth = 20\n'
                    '[data]\nsamples = 50\n[training]\nsteps = 3000\nevaluate = 1000\n')  # fmt: skip
    command = [
        sys.executable,
        "-c",
        "from fewfire.cli import main; main()",
        "sweep",
        "run",
        str(spec),
        "--store",
        str(path),
        "--workers",
        "2",
        "--fail-fast",
    ]
    for number in (signal.SIGINT, signal.SIGTERM):
        before = rows_in(path)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(lambda before=before: rows_in(path) > before)
            process.send_signal(number)
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 130 and errors == ""
        stopped, resume = output.splitlines()
        said = re.fullmatch(rf"Stopped\. (\d+) of 2000 runs are kept in {path}\.", stopped)
        # A batch that was kept in the very moment of the interruption is not counted.
        assert before <= int(said[1]) <= rows_in(path) < 2000
        assert resume == f"Resume with: fewfire sweep run {spec} --store {path} --workers 2 --fail-fast"
