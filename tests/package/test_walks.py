"""The files that six tasks cross are those that docs/architecture.md lists, and no more than asked."""

import subprocess
import sys
from pathlib import Path

from fewfire.tabular._trees import load_lightgbm

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "walks.py"


def test_no_walk_grows_and_the_page_lists_each(core):
    load_lightgbm()  # where it cannot be, the test is skipped
    ended = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr
