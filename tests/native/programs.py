"""Builds the C++ programs of this folder from csrc/, once per state of the sources, into build/tests; or from a csrc/ in
which something is wrong, to see that a program notices.

They replace what a process has only once (operator new, pthread_create), so they are programs of their own and not parts
of the extension. Only the baseline kernels are in them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "build" / "tests"
FLAGS: Final = (
    "-std=c++20",
    "-O1",
    "-ffp-contract=off",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-D_GLIBCXX_ASSERTIONS",
    "-DFEWFIRE_ISA=baseline",
    "-DFEWFIRE_HAS_baseline",
)
SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "allocation_faults": ("csrc/base/*.cpp", "csrc/core/halfspace/*.cpp", "csrc/kernels/halfspace.cpp"),
    "thread_faults": ("csrc/base/parallel.cpp", "csrc/base/interrupt.cpp"),
    "screen_bounds": (
        "csrc/base/*.cpp",
        "csrc/core/sparse_block/*.cpp",
        "csrc/kernels/sparse_block.cpp",
        "csrc/kernels/weight_codes.cpp",
    ),
}


def compiler() -> str | None:
    """The C++ compiler there is."""
    return os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def program(name: str) -> Path:
    """The program of that name, built unless it is there; the compiler's words where it cannot be built."""
    sources = [
        ROOT / "tests" / "native" / f"{name}.cpp",
        *(path for pattern in SOURCES[name] for path in sorted(ROOT.glob(pattern))),
    ]
    headers = sorted(ROOT.glob("csrc/**/*.hpp"))
    digest = hashlib.sha256(" ".join([str(compiler()), *FLAGS]).encode())
    for path in (*sources, *headers):
        digest.update(path.read_bytes())
    target = FOLDER / f"{name}-{digest.hexdigest()[:16]}"
    if not target.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        command = [str(compiler()), *FLAGS, f"-I{ROOT / 'csrc'}", *map(str, sources), "-o", str(unfinished), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        unfinished.replace(target)
        for old in FOLDER.glob(f"{name}-*"):
            if old != target and not old.suffix:
                old.unlink(missing_ok=True)
    return target


def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program with these arguments."""
    return subprocess.run([program(name), *map(str, arguments)], capture_output=True, text=True)


def run_mutant(name: str, folder: Path, *edits: tuple[str, str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program built in `folder` from a copy of csrc/ with edits (file, old, new), `old` being there once."""
    shutil.copytree(ROOT / "csrc", folder / "csrc")
    for file, old, new in edits:
        place = folder / "csrc" / file
        text = place.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{file} has {text.count(old)} places {old!r}")
        place.write_text(text.replace(old, new))
    paths = [path for pattern in SOURCES[name] for path in sorted(folder.glob(pattern))]
    sources = [ROOT / "tests" / "native" / f"{name}.cpp", *paths]
    target = folder / name
    command = [str(compiler()), *FLAGS, f"-I{folder / 'csrc'}", *map(str, sources), "-o", str(target), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return subprocess.run([target], capture_output=True, text=True)
