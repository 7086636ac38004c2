"""benchmarks/: few scripts, each listed with its question, each importing public names only."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


def test_the_list_is_complete():
    """At most 28 scripts; the README's list has each of them, with question, command, rival and figure, and no other."""
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| [")]
    assert all(len(row) == 4 and all(cell.strip() for cell in row) for row in rows)
    listed = [re.match(r"\[`(\w+\.py)`\]\(\1\)", row[0])[1] for row in rows]
    assert listed == [script.name for script in SCRIPTS]
    assert len(SCRIPTS) <= 28


def private(tree):
    """Modules and names of fewfire with a leading underscore that a script imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, *rest = name.split(".")
            if package == "fewfire" and any(part.startswith("_") for part in rest):
                yield name


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_import_public_names(script):
    assert list(private(ast.parse(script.read_text(encoding="utf-8")))) == []


def test_private_imports_are_seen():
    """The check itself."""
    lines = (
        "from fewfire import _core\nimport fewfire.sweeps._plan\nfrom fewfire.engines._run import Run\nimport fewfire"
    )
    assert len(list(private(ast.parse(lines)))) == 3
