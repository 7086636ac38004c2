"""What `make sanitize` runs is there, and the script for the thread sanitizer works without one."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SANITIZE = runpy.run_path(str(ROOT / "tools" / "sanitize.py"), run_name="sanitize")


@pytest.mark.parametrize("name", [*SANITIZE["FOLDERS"], *SANITIZE["QUICK"]])
def test_what_is_run_exists(name):
    assert (ROOT / "tests" / name).exists()


def test_every_folder_whose_tests_ask_for_the_extension_is_run():
    asking = [
        path.relative_to(ROOT / "tests")
        for path in (ROOT / "tests").glob("*/test_*.py")
        if re.search(r"^def test_\w+\([^)]*\bcore\b", path.read_text(), re.M)
    ]
    # Recipes reach C++ through engines that are run here; the others are not about what it computes.
    run = {"papers", "sweeps", "native", "package", *SANITIZE["FOLDERS"]}
    assert [str(path) for path in asking if not run & {path.parts[0], str(path)}] == []


def test_a_compiler_without_sanitizers_is_passed_over(tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\necho unknown\n")
    compiler.chmod(0o755)
    assert SANITIZE["runtime"](str(compiler), "asan") is None


def test_the_threads_work_without_a_sanitizer(core):
    script = ROOT / "tests" / "native" / "threads.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no errors with the")
