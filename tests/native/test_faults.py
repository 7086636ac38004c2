"""Memory and threads that cannot be had, at every point where C++ asks for some: nothing is lost, nothing half done."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import programs
import pytest

ROOT = Path(__file__).resolve().parents[2]
needs_compiler = pytest.mark.skipif(
    programs.compiler() is None, reason="needs a C++ compiler (Debian: apt install g++)"
)


@needs_compiler
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("method", ["scan", "screen", "tree", "layers"])
def test_an_index_that_runs_out_of_memory_is_as_it_was(method, threads):
    done = programs.run("allocation_faults", method, threads, threads, 4)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout)
    assert counts["injected"] > 300
    assert counts["operations"] == 15


@needs_compiler
def test_work_is_done_by_the_threads_that_can_be_started():
    done = programs.run("thread_faults")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["injected"] == 48


def test_threads_are_started_in_one_place():
    starting = re.compile(r"std::j?thread\b|std::async|pthread_create|#pragma omp")
    found = {path.name for path in (ROOT / "csrc").rglob("*.[ch]pp") if starting.search(path.read_text())}
    assert found == {"parallel.cpp"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's limits")
def test_everything_runs_where_no_thread_can_be_started(core):
    """Every thread gets a stack of 2^47 bytes, more than there are addresses."""
    import resource

    if resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY:
        pytest.skip("the size of stacks is limited here")
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "native" / "threads.py", "--alone"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 47, resource.RLIM_INFINITY)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    if done.stderr.startswith("threads can be started"):
        pytest.skip("threads get stacks of another size here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no errors with the")
