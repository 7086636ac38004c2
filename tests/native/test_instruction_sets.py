"""Code for AVX2 and AVX-512 cannot be reached by a processor without them (`csrc/base/cpu.hpp` describes why).

The objects of the build are inspected: a function that another object file may share with a kernel compiled for a newer
processor (a weak symbol, which the linker keeps once) would bring that kernel's instructions to every caller.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VARIANTS = ("avx2", "avx512")
# The exception handler's address, the same in every object: data of eight bytes, no code.
HARMLESS = re.compile(r"DW\.ref\.__gxx_personality_v0")


@pytest.fixture(scope="module")
def objects() -> dict[str, list[Path]]:
    """The object files of the latest build, by who runs them: "baseline", "avx2", "avx512"."""
    if not (shutil.which("nm") and shutil.which("objdump")):
        pytest.skip("needs nm and objdump (Debian: apt install binutils)")
    builds = [
        module.parent
        for module in (ROOT / "build").glob("*/_core*.so")
        if not module.parent.name.startswith("sanitize")
    ]
    if not builds:
        pytest.skip("needs the build folder of an editable install (make test)")
    latest = max(builds, key=lambda folder: max(path.stat().st_mtime for path in folder.glob("_core*.so")))
    found: dict[str, list[Path]] = {"baseline": [], "avx2": [], "avx512": []}
    for path in latest.glob("CMakeFiles/*/csrc/**/*.o"):
        target, *source = path.relative_to(latest / "CMakeFiles").with_suffix("").parts
        if not ROOT.joinpath(*source).exists():
            continue  # left behind by a file that is gone
        found[next((name for name in VARIANTS if target == f"kernels_{name}.dir"), "baseline")].append(path)
    if not found["avx512"]:
        pytest.skip("needs a build with AVX2 and AVX-512 variants (x86-64)")
    assert len(found["avx2"]) == len(found["avx512"])
    return found


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(path: Path) -> list[tuple[str, str]]:
    """(kind, mangled name) of each symbol the object defines."""
    rows = [line.split() for line in output("nm", "--defined-only", path).splitlines()]
    return [(row[1], row[2]) for row in rows if len(row) == 3]


@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_share_no_function_with_other_objects(objects, variant):
    own = f"7fewfire{len(variant)}{variant}"
    for path in objects[variant]:
        for kind, name in symbols(path):
            # Lower-case kinds are local to the object; v and w are weak without a definition to share.
            if kind.isupper() or kind == "u":
                assert own in name or HARMLESS.fullmatch(name), (
                    f"{path.name} for {variant} exports {output('c++filt', name).strip()}, which the baseline may be "
                    f"linked to; keep it in an unnamed namespace, or do it in csrc/core"
                )


@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_of_a_variant_runs_before_it_is_chosen(objects, variant):
    for path in objects[variant]:
        sections = output("objdump", "--section-headers", path)
        assert ".init_array" not in sections, f"{path.name} for {variant} has a global that is set up when loading"
        assert ".ctors" not in sections


def test_the_baseline_holds_no_vector_instructions_of_newer_processors(objects):
    # Not tzcnt: older processors run it as bsf, and compilers use it where that gives the same.
    newer = re.compile(r"\t(v[a-z0-9]+|kmov[bwdq]|lzcnt|mulx|[sr][ah][rl]x|rorx|pdep|pext|popcnt)\s.*")
    for path in objects["baseline"]:
        found = newer.search(output("objdump", "--disassemble", "--no-show-raw-insn", path))
        assert found is None, f"{path.name}: {found.group(0).strip()}"


def test_every_variant_exports_the_same_functions(objects):
    names = {
        variant: {
            name.replace(f"7fewfire{len(variant)}{variant}", "")
            for path in paths
            if path.parts[-4].startswith("kernels_")
            for kind, name in symbols(path)
            if kind == "T"
        }
        for variant, paths in objects.items()
    }
    assert names["baseline"] == names["avx2"] == names["avx512"] != set()


def asked_for(name: str) -> subprocess.CompletedProcess[str]:
    code = "from fewfire import _extension; print(_extension.load().isa())"
    environment = {**os.environ, "FEWFIRE_ISA": name}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_an_instruction_set_that_there_is_not_is_refused(core):
    refused = asked_for("sse9")
    known = ", ".join(map(repr, core.available_isas()))
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"fewfire._errors.InvalidArgument: FEWFIRE_ISA must name an instruction set that this machine runs: {known}; "
        "got 'sse9'. Remedy: unset the environment variable to use the best of them."
    )


def test_an_empty_name_asks_for_the_best_and_others_for_themselves(core):
    assert asked_for("").stdout.strip() == core.available_isas()[-1]
    for name in core.available_isas():
        assert asked_for(name).stdout.strip() == name
