"""Build the sdist and, from it, a wheel for Python 3.11 and one for all later ones; try each without a compiler.

    python tools/wheels.py [--pythons python3.11 python3.12 python3.13]

Everything lies in build/wheels. Each interpreter gets an empty environment, into which the wheel that fits is installed
with a compiler's name that leads nowhere, and where tools/try_wheel.py has to pass. At the end `auditwheel` prints
which manylinux the wheels fit, and by which symbols: those built on a recent Linux need a recent one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheels"
NO_COMPILER = {"CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}


def main() -> None:
    """Build, install, try, and print what the wheels fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [name for name in (f"python3.{minor}" for minor in range(11, 16)) if works(name)]
    parser.add_argument("--pythons", nargs="+", default=known or [sys.executable])
    names = parser.parse_args().pythons
    shutil.rmtree(WORK, ignore_errors=True)
    pythons = {version(name): name for name in names}
    tools = environment(sys.executable, "tools")
    pip(tools, "--requirement", ROOT / "requirements" / "release.txt")
    call([tools, "-m", "build", "--sdist", "--outdir", WORK / "dist", ROOT])
    (source,) = (WORK / "dist").glob("*.tar.gz")
    # The first is built for itself where it is 3.11; of the later ones the earliest serves all.
    builders = [min(found) for found in (pythons.keys() & {11}, pythons.keys() - {11}) if found]
    for minor in builders:
        builder = environment(pythons[minor], f"builder-3.{minor}")
        required = {**os.environ, "FEWFIRE_REQUIRE_EXTENSION": "1"}
        call([builder, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", WORK / "dist", source], environment=required)
    for minor, python in pythons.items():
        fitting = [wheel for wheel in (WORK / "dist").glob("*.whl") if ("cp311-cp311" in wheel.name) == (minor == 11)]
        clean = environment(python, f"clean-3.{minor}")
        pip(clean, *fitting)
        call([clean, ROOT / "tools" / "try_wheel.py"], environment={**os.environ, **NO_COMPILER})
    for wheel in sorted((WORK / "dist").glob("*.whl")):
        print(wheel.name, flush=True)
        call([tools, "-m", "auditwheel", "show", wheel])


def works(name: str) -> bool:
    """Whether an interpreter of that name is there and starts (a shim may have none behind it)."""
    return shutil.which(name) is not None and subprocess.run([name, "-c", ""], capture_output=True).returncode == 0


def version(name: str) -> int:
    """The minor version of an interpreter."""
    done = subprocess.run([name, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True)
    return int(done.stdout)


def environment(python: str, name: str) -> Path:
    """The interpreter of a new environment."""
    call([python, "-m", "venv", WORK / name])
    return WORK / name / "bin" / "python"


def pip(python: Path, *what: object) -> None:
    """Install into an environment, where nothing can be compiled."""
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    call(command, environment={**os.environ, **NO_COMPILER})


def call(command: list[object], environment: dict[str, str] | None = None) -> None:
    """Run a command outside of the repository; end with its status where it fails."""
    done = subprocess.run([str(part) for part in command], cwd=WORK if WORK.exists() else ROOT, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"wheels: {' '.join(map(str, command))} failed")


if __name__ == "__main__":
    main()
