"""The C++ sources include downwards only: base, kernels, core, bindings; a part of a kernel file stays in kernels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSRC = Path(__file__).resolve().parents[2] / "csrc"
ORDER = ("base", "kernels", "core", "bindings")
FILES = sorted(path for path in CSRC.rglob("*") if path.suffix in (".hpp", ".cpp"))


def includes(path: Path, text: str | None = None) -> list[Path]:
    return [Path(name) for name in re.findall(r'^#include "(.*)"', path.read_text() if text is None else text, re.M)]


def outside_kernels(path: Path) -> str:
    """What of a file is compiled where there is no instruction set: kernel files alone define FEWFIRE_ISA."""
    return path.read_text().partition("#if defined(FEWFIRE_ISA)\n")[0]


def test_every_folder_has_its_place_in_the_order():
    assert {path.relative_to(CSRC).parts[0] for path in FILES} == set(ORDER)


def test_no_file_includes_from_a_folder_above_its_own():
    wrong = [
        f"{path.relative_to(CSRC)} includes {name}"
        for path in FILES
        for name in includes(path)
        if ORDER.index(name.parts[0]) > ORDER.index(path.relative_to(CSRC).parts[0])
    ]
    assert wrong == []


def test_every_include_exists():
    assert [f"{path.name}: {name}" for path in FILES for name in includes(path) if not (CSRC / name).is_file()] == []


def test_parts_of_kernel_files_are_included_by_kernels_alone():
    # They are compiled for the instruction set of each file that includes them, so a baseline file must not.
    parts = {path.relative_to(CSRC) for path in FILES if path.name.endswith("-inl.hpp")}
    assert parts
    assert {part.parts[0] for part in parts} == {"kernels"}
    for path in FILES:
        if parts.intersection(includes(path, outside_kernels(path))):
            assert path.relative_to(CSRC).parts[0] == "kernels"
            assert path.suffix == ".cpp" or path.name.endswith("-inl.hpp"), f"{path} is read by the baseline too"


def test_a_header_with_code_for_one_file_is_part_of_it_or_named_so():
    users: dict[Path, list[Path]] = {}
    for path in FILES:
        for name in includes(path):
            users.setdefault(name, []).append(path)
    for name, by in users.items():
        text = outside_kernels(CSRC / name)
        if len(by) == 1 and re.search(r"^\w[^\n;=]*\([^;]*\) (const )?\{$", text, re.M):
            assert name.name.endswith("-inl.hpp"), f"{name} holds code and only {by[0].name} includes it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CSRC)))
def test_files_are_ideas_of_at_most_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400
