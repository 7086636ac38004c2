"""Damaged networks, indexes and stores: their content, or an error in one line; never more memory than is theirs.

Damage is bits, ranges, cuts, insertions, and pieces of other valid files; for archives also arrays whose checksums are
right. A store has no checksums: numbers in it may be others, but never specs, and never a raw error.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.least(
    {
        **{f"damaged {kind} refused": 200 for kind in ("network", "index", "store")},
        **{f"damaged {kind} same": 20 for kind in ("network", "index", "store")},
    }
)
def test_damaged_files(tmp_path, rounds, draw, tally):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, Path(__file__).parent / "mutants.py", tmp_path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        for _ in rounds:
            process.stdin.write(f"{draw.integers(2**62)}\n")
            process.stdin.flush()
            counts = json.loads(process.stdout.readline() or '{"wrong": "the process died"}')
            assert "wrong" not in counts, counts["wrong"]
            for kind, count in counts.items():
                tally(f"damaged {kind}", count)
        process.stdin.close()
