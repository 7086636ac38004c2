"""Run every script of benchmarks/ and print its last line: one JSON object with the figure.

The exit status is the number of benchmarks that missed the figure asked of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def main() -> int:
    """One script after the other, so that none disturbs another's timings."""
    missed = 0
    for script in sorted(FOLDER.glob("[a-z]*.py")):
        print(f"== {script.name}", flush=True)
        missed += subprocess.run([sys.executable, script]).returncode != 0
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
