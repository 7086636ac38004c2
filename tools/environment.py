"""Bring `.venv` up to date: create it, install the pinned packages, build and install fewfire.

Called by the Makefile. Each part leaves a stamp with the hash of what it was made from, so a second
call does nothing, and a half-made or stale environment is repaired. Uses the standard library alone.

    python3 tools/environment.py [--with NAME …]      for the files requirements/NAME.txt
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
SOURCES = ("CMakeLists.txt", "pyproject.toml", "requirements/build.txt", "csrc/**/*")


def main() -> None:
    """Do what is not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = sorted(path.stem for path in (ROOT / "requirements").glob("*.txt"))
    parser.add_argument("--with", dest="extras", action="append", default=[], choices=names)
    extras = parser.parse_args().extras
    create_environment()
    for name in ("build", "run", *extras):
        install_pinned(name)
    install_fewfire()


def create_environment() -> None:
    """A working `.venv`, made anew when it is missing or broken."""
    if sys.version_info < (3, 11):
        stop(f"fewfire needs Python 3.11 or newer; this is {sys.version.split()[0]}. Use: make PYTHON=python3.12 …")
    if PYTHON.exists() and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    print("Creating .venv", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    if subprocess.run([sys.executable, "-m", "venv", VENV]).returncode != 0:
        stop("Python's venv module is not complete here. On Debian: apt install python3-venv")


def install_pinned(name: str) -> None:
    """The packages of requirements/NAME.txt, at exactly those versions."""
    listed = ROOT / "requirements" / f"{name}.txt"
    stamp = VENV / f".stamp-{name}"
    wanted = digest([listed])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"Installing requirements/{name}.txt", flush=True)
    # Rivals need none of what their wheels would fetch: hundreds of megabytes for GPUs and drawings.
    pip("install", *(["--no-deps"] if name == "bench" else []), "--requirement", str(listed))
    stamp.write_text(wanted)


def install_fewfire() -> None:
    """fewfire itself, editable: Python files are used in place, the C++ part is compiled when it changed.

    An editable installation lists the modules there are, so it is made anew when one is added, moved or removed.
    """
    stamp = VENV / ".stamp-fewfire"
    modules = "\n".join(sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/*.py")))
    wanted = digest(sorted(path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()), modules)
    installed = subprocess.run([PYTHON, "-c", "import fewfire"], capture_output=True, cwd="/").returncode == 0
    if installed and stamp.exists() and stamp.read_text() == wanted:
        return
    print("Building fewfire", flush=True)
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler:  # then a failing build is an error to show, not a reason to fall back
        os.environ["FEWFIRE_REQUIRE_EXTENSION"] = "1"
    pip("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    stamp.write_text(wanted)


def pip(*arguments: str) -> None:
    """Run the environment's pip, quietly; stop with its output when it fails."""
    command = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    environment = {**os.environ, "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        stop(f"{done.stdout}\n{' '.join(command)} failed.")


def digest(paths: list[Path], text: str = "") -> str:
    """A hash of the interpreter, a text, and the names and contents of files."""
    total = hashlib.sha256(f"{sys.version}{ROOT}{text}".encode())
    for path in paths:
        total.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def stop(message: str) -> None:
    """End with a message and status 1."""
    print(message, file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
