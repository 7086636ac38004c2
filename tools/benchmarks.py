"""Run every script of benchmarks/ and print its last line: one JSON object with the figure.

The exit status is the number of benchmarks that missed the figure asked of them. Scripts that do nothing without
arguments, such as folders of weights or of results, are named and left out.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

USAGE = 2  # what argparse exits with
FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def main() -> int:
    """One script after the other, so that none disturbs another's timings."""
    missed = 0
    for script in sorted(FOLDER.glob("[a-z]*.py")):
        print(f"== {script.name}", flush=True)
        status = subprocess.run([sys.executable, script]).returncode
        if status == USAGE:
            print("left out: it needs arguments, which its header explains", flush=True)
        missed += status not in (0, USAGE)
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
