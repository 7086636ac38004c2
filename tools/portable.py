"""Run the tests as other processors would: `make portable`, and a quick part of it that every change runs.

Each processor is a set of environment variables that OpenBLAS, fewfire's C++ part, NumPy, glibc and PyTorch read.
Before its tests run, a process with the same variables asserts that each of them is in force. What this processor
cannot pretend to be is named and left out.

    python tools/portable.py            Prescott and Haswell in full, the others on what touches BLAS
    python tools/portable.py --quick    what is promised bit for bit, on Prescott and Haswell, in under two minutes
    python tools/portable.py --check    assert that the variables of the environment are in force, and print them
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BLAS = [f"tests/{name}" for name in ("engines", "fourier", "learners", "networks", "robustness", "tabular", "papers")]
PROMISED = [
    "tests/core/test_random.py",
    "tests/engines/test_same_bits_everywhere.py",
    "tests/sweeps/test_same_rows.py",
    "tests/halfspace/test_halfspace_scores.py",
    "tests/halfspace/test_halfspace_extremes.py",
    "tests/learners/test_fixed_feature_classifiers.py",
    "tests/robustness/test_robustness_branch.py",
]
"""The tests named in docs/reliability.md, "The same on every machine", and those that rounding has broken before."""


@dataclass(frozen=True)
class Processor:
    """What a processor has: OpenBLAS's name of its core, and the x86-64 level of the instructions it runs."""

    name: str
    level: int
    threads: int
    flag: str
    full: bool = False
    alias: str = ""  # what an OpenBLAS without kernels of its own for this core names, and uses, in its place

    @property
    def instructions(self) -> str:
        """The variant of fewfire's kernels: that for AVX-512 needs VNNI and VPOPCNTDQ, which Skylake has not."""
        return {2: "baseline", 3: "avx2", 4: "avx512"}[3 if self.name == "SkylakeX" else self.level]

    def environment(self) -> dict[str, str]:
        """The variables that make the libraries behave so."""
        found = {
            "OPENBLAS_CORETYPE": self.name,
            "OPENBLAS_NUM_THREADS": str(self.threads),
            "FEWFIRE_ISA": self.instructions,
            "ATEN_CPU_CAPABILITY": {2: "default", 3: "avx2", 4: "avx512"}[self.level],
        }
        numpy_groups = [group for group in dispatched() if level_of(group) > self.level]
        if numpy_groups:
            found["NPY_DISABLE_CPU_FEATURES"] = " ".join(numpy_groups)
        hidden = [name for name, level in GLIBC if level > self.level]
        if hidden:
            found["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in hidden)
        return found


PROCESSORS = [
    Processor("Prescott", 2, 1, "sse3", full=True, alias="Katmai"),
    Processor("Sandybridge", 2, 2, "avx"),
    Processor("Haswell", 3, 1, "avx2", full=True),
    Processor("Zen", 3, 2, "avx2", alias="Haswell"),
    Processor("SkylakeX", 4, 1, "avx512f"),
    Processor("Cooperlake", 4, 2, "avx512_bf16", alias="SkylakeX"),
]
GLIBC = (("AVX2", 3), ("FMA", 3), ("AVX512F", 4), ("AVX512VL", 4))
_ACTIVE = {"FMA": (0, 2, 12), "AVX2": (1, 1, 5), "AVX512F": (1, 1, 16), "AVX512VL": (1, 1, 31)}
"""Where `ld.so --list-diagnostics` shows a feature: leaf, register, bit."""


def dispatched() -> list[str]:
    """The groups of features for which this NumPy has code of its own."""
    return list(multiarray().__cpu_dispatch__)


def multiarray() -> Any:
    """NumPy's module that lists its features; before NumPy 2 under another name."""
    import numpy as np

    return importlib.import_module(f"numpy.{'_core' if hasattr(np, '_core') else 'core'}._multiarray_umath")


def level_of(group: str) -> int:
    """The x86-64 level that a group of NumPy's needs: X86_V3, AVX2, FMA3 are of the third, AVX-512 of the fourth."""
    return 4 if "512" in group or group == "X86_V4" else 3


def check() -> None:
    """Assert that every variable of this environment is in force; prints what is."""
    import scipy.linalg  # noqa: F401  # loads SciPy's BLAS
    from threadpoolctl import threadpool_info

    from fewfire import _extension

    environment = os.environ
    blas = [entry for entry in threadpool_info() if entry["internal_api"] == "openblas"]
    assert blas, "NumPy and SciPy use no OpenBLAS here"
    processor = next(known for known in PROCESSORS if known.name == environment["OPENBLAS_CORETYPE"])
    for entry in blas:
        assert entry["architecture"] in (processor.name, processor.alias), entry
        assert entry["num_threads"] == int(environment["OPENBLAS_NUM_THREADS"]), entry
    core = _extension.load()
    assert core is not None and core.isa() == environment["FEWFIRE_ISA"], "fewfire's C++ part"
    off, features = environment.get("NPY_DISABLE_CPU_FEATURES", "").split(), multiarray().__cpu_features__
    assert not [name for name in off if features[name]], "NumPy"
    hidden = re.findall(r"-(\w+)", environment.get("GLIBC_TUNABLES", ""))
    active = glibc_features()
    assert active is None or not [name for name in hidden if active[name]], f"glibc: {active}"
    cores = " and ".join(entry["architecture"] for entry in blas)
    printed = f"OpenBLAS {cores} on {blas[0]['num_threads']} threads, fewfire {core.isa()}"
    printed += f", NumPy without {' '.join(off) or 'nothing'}"
    printed += f", glibc without {' '.join(hidden) or 'nothing'}" if active is not None else ", no glibc"
    try:
        import torch
    except ImportError:
        printed += ", no PyTorch"
    else:
        capability = torch.backends.cpu.get_cpu_capability()
        assert capability.lower() == environment["ATEN_CPU_CAPABILITY"], f"PyTorch: {capability}"
        printed += f", PyTorch {capability}"
    print(printed, flush=True)


def glibc_features() -> dict[str, bool] | None:
    """Which features glibc's functions may use in a process with this environment; None with another C library."""
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    if not loader.exists():
        return None
    printed = subprocess.run([loader, "--list-diagnostics"], capture_output=True, text=True).stdout
    words = re.findall(r"features\[0x(\w+)\]\.active\[0x(\w+)\]=0x(\w+)", printed)
    table = {(int(leaf, 16), int(register, 16)): int(word, 16) for leaf, register, word in words}
    if not table:
        return None
    return {name: bool(table[leaf, register] >> bit & 1) for name, (leaf, register, bit) in _ACTIVE.items()}


def missing(processor: Processor, flags: set[str]) -> str | None:
    """Why this machine cannot pretend to be that processor; None if it can."""
    from fewfire import _extension

    core = _extension.load()
    if core is None:
        return "the C++ part is not installed"
    if processor.instructions not in core.available_isas():
        return f"the C++ part has no {processor.instructions} here"
    return None if processor.flag in flags else f"this processor has no {processor.flag}"


def main() -> int:
    """Run; the exit status is 1 when a test fails or a variable is not in force."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", choices=[processor.name for processor in PROCESSORS])
    given = parser.parse_args()
    if given.check:
        check()
        return 0
    if platform.machine() not in ("x86_64", "AMD64"):
        print(f"portable: processors of another make can be imitated on x86-64 only; this is {platform.machine()}")
        return 0
    found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    flags = set(found[1].split()) | {"sse3"} if found else set()
    outcomes: dict[str, str] = {}
    for processor in PROCESSORS:
        if (given.quick and not processor.full) or given.only not in (None, processor.name):
            continue
        reason = missing(processor, flags)
        if reason is not None:
            outcomes[processor.name] = f"left out: {reason}"
            continue
        variables = processor.environment()
        print(f"portable: {processor.name}: {' '.join(f'{k}={v!r}' for k, v in variables.items())}", flush=True)
        environment = {**os.environ, **variables}
        if subprocess.run([sys.executable, __file__, "--check"], env=environment).returncode:
            outcomes[processor.name] = "FAILED: a variable is not in force"
            continue
        part = PROMISED if given.quick else [] if processor.full else BLAS
        tests = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "--dist",
            "worksteal",
            "-p",
            "no:cacheprovider",
            *part,
        ]
        done = subprocess.run(tests, env=environment, cwd=ROOT)
        outcomes[processor.name] = "passed" if done.returncode == 0 else "FAILED"
    for name, outcome in outcomes.items():
        print(f"portable: {name}: {outcome}")
    return int(any("FAILED" in outcome for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
