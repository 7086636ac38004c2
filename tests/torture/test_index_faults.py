"""Half-space indexes that run out of memory at every allocation they make (`tests/native/allocation_faults.cpp`)."""

import json
import runpy
from pathlib import Path

import pytest

PROGRAMS = runpy.run_path(str(Path(__file__).parents[1] / "native" / "programs.py"))
METHODS = ("scan", "screen", "tree", "layers")


@pytest.mark.least({"allocation faults": 5000})
def test_changes_that_run_out_of_memory_change_nothing(rounds, seed, tally):
    if PROGRAMS["compiler"]() is None:
        pytest.skip("needs a C++ compiler (Debian: apt install g++)")
    for number in rounds:
        for method in METHODS:
            done = PROGRAMS["run"]("allocation_faults", method, 1000 * seed + number, 1 + 2 * (number % 2), 1)
            assert done.returncode == 0, done.stdout + done.stderr
            tally("allocation faults", json.loads(done.stdout)["injected"])
