"""Run the C++ part under sanitizers: wrong addresses, undefined behaviour, data races.

Builds into build/sanitize-*, then runs the tests that reach C++ with the address and undefined-behaviour sanitizers,
and tests/native/threads.py, which trains and queries from several threads, with the thread sanitizer. A sanitizer that
the compiler does not have is skipped with a printed line. Called by the Makefile with the environment's Python.

    python tools/sanitize.py [--quick]        quick: what fits into three minutes on two cores
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    *("core", "fourier", "halfspace", "engines", "learners", "tabular", "robustness", "problems", "networks"),
    *("pytorch/test_torch_kernel.py", "pytorch/test_torch_train.py"),
)
QUICK = (
    "core/test_bits.py",
    "core/test_extension.py",
    "core/test_random.py",
    "fourier/test_estimate.py",
    "fourier/test_gram.py",
    "fourier/test_subcubes.py",
    "fourier/test_walsh.py",
    "halfspace/test_halfspace_arguments.py",
    "halfspace/test_halfspace_extremes.py",
    "halfspace/test_halfspace_index.py",
    "halfspace/test_halfspace_layers.py",
    "engines/test_cpu_engine.py",
    "engines/test_robust_lists.py",
    "learners/test_parity_search.py",
    "pytorch/test_torch_kernel.py",
    "dense/test_forward.py",
)


@dataclass(frozen=True)
class Sanitizer:
    """A build, and the library that has to be loaded before Python is."""

    name: str
    flags: str
    library: str
    options: dict[str, str]


# CPython keeps what it allocates to the end, so leaks mean nothing.
ADDRESS = Sanitizer(
    "address",
    "address,undefined",
    "asan",
    {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1", "PYTHONMALLOC": "malloc"},
)
THREAD = Sanitizer("thread", "thread", "tsan", {"TSAN_OPTIONS": "halt_on_error=1 second_deadlock_stack=1"})


def main() -> None:
    """Build and run both, and print how long it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        print("sanitize: skipped, there is no C++ compiler")
        return
    for sanitizer in (ADDRESS, THREAD):
        library = runtime(compiler, sanitizer.library)
        if library is None:
            print(f"sanitize: {sanitizer.flags} skipped, {compiler} does not have it", flush=True)
            continue
        start = time.monotonic()
        module = build(sanitizer, compiler)
        built = time.monotonic()
        if sanitizer is ADDRESS:
            paths = [f"tests/{name}" for name in (QUICK if quick else FOLDERS)]
            workers = ["-n", "2"] if (os.cpu_count() or 1) > 1 else []
            # What the sanitizer prints as it ends the process has to come through.
            command = ["-m", "pytest", "-q", "--capture=sys", "-p", "preload_core", *workers, *paths]
        else:
            script = "import preload_core, runpy; runpy.run_path('tests/native/threads.py', run_name='__main__')"
            command = ["-c", script]
        run(sanitizer, library, module, command)
        took = f"built in {built - start:.0f} s, run in {time.monotonic() - built:.0f} s"
        print(f"sanitize: {sanitizer.flags} clean, {took}", flush=True)


def runtime(compiler: str, name: str) -> str | None:
    """What to load before Python: the sanitizer's library and the C++ library whose exceptions it watches."""
    found = []
    for choices in ((f"lib{name}.so", f"libclang_rt.{name}-{platform.machine()}.so"), ("libstdc++.so",)):
        paths = [ask(compiler, f"-print-file-name={choice}") for choice in choices]
        known = [path for path in paths if Path(path).is_absolute() and Path(path).exists()]
        if not known:
            return None
        found.append(str(Path(known[0]).resolve()))
    return " ".join(found)


def build(sanitizer: Sanitizer, compiler: str) -> Path:
    """The module built with the sanitizer, in a folder of its own."""
    folder = ROOT / "build" / f"sanitize-{sanitizer.name}"
    # Races are those of the code around the kernels, so one variant of them will do there.
    options = {
        "CMAKE_BUILD_TYPE": "None",
        "CMAKE_CXX_COMPILER": compiler,
        "FEWFIRE_SANITIZE": sanitizer.flags,
        "FEWFIRE_BASELINE_ONLY": "ON" if sanitizer is THREAD else "OFF",
        "Python_EXECUTABLE": sys.executable,
    }
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if cmake is None:
        raise SystemExit("sanitize: there is no cmake. Remedy: install it (Debian: apt install cmake)")
    print(f"sanitize: building with {sanitizer.flags}", flush=True)
    quiet(cmake, "-S", ROOT, "-B", folder, *(f"-D{name}={value}" for name, value in options.items()))
    quiet(cmake, "--build", folder, "--parallel", str(min(os.cpu_count() or 1, 8)))
    return max(folder.glob("_core*.so"), key=lambda path: path.stat().st_mtime)


def run(sanitizer: Sanitizer, library: str, module: Path, command: list[str]) -> None:
    """Run Python under the sanitizer; stop when it finds something."""
    environment = {
        **os.environ,
        "FEWFIRE_SANITIZER": sanitizer.name,  # for tests of what a sanitizer itself cannot do
        **sanitizer.options,
        "LD_PRELOAD": library,
        "FEWFIRE_PRELOAD": str(module),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "tools"), os.environ.get("PYTHONPATH")])),
    }
    # The thread sanitizer keeps shadows at fixed addresses, which random ones may take.
    setarch = shutil.which("setarch") if sanitizer is THREAD else None
    prefix = [setarch, platform.machine(), "--addr-no-randomize"] if setarch else []
    done = subprocess.run([*prefix, sys.executable, *command], cwd=ROOT, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"sanitize: {sanitizer.flags} failed")


def ask(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def quiet(*command: str | Path) -> None:
    """Run a command; show what it printed when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}\n{' '.join(map(str, command))} failed.")


if __name__ == "__main__":
    main()
