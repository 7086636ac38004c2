"""The README's three lines state what the stored results contain."""

import json
import runpy
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "readme_lines.py"))


def test_the_lines_follow_the_stored_results(capsys):
    assert TOOL["main"](["--check"]) == 0, capsys.readouterr().out


def test_three_lines_each_with_a_command_that_exists():
    made = TOOL["lines"](ROOT / "docs").splitlines()[1:-1]
    assert [line[:4] for line in made] == ["- **"] * 3
    assert "`fewfire reproduce --all -o out`" in made[0]
    for line, name in zip(made[1:], ("tabular_kept_aside.py", "sparse_transformer.py"), strict=True):
        assert f"`python benchmarks/{name}" in line and (ROOT / "benchmarks" / name).exists()


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs" / "results").mkdir(parents=True)
    for path in (ROOT / "docs" / "results").glob("*.json"):
        shutil.copy(path, tmp_path / "docs" / "results")
    row = "| a | 31 tokens per second against 7 dense, 4.4×; the same texts | `python benchmarks/sparse_transformer.py F` |"
    (tmp_path / "docs" / "results.md").write_text(f"{row}\n")
    (tmp_path / "README.md").write_text(f"before\n{TOOL['BEGIN']}\nold\n{TOOL['END']}\nafter\n")
    return tmp_path


def test_another_result_is_another_line(root, capsys):
    options = ["--root", str(root)]
    assert TOOL["main"]([*options, "--check"]) == 1
    assert "does not follow docs/results: run python tools/readme_lines.py" in capsys.readouterr().out
    assert TOOL["main"](options) == 0
    first = (root / "README.md").read_text()
    assert first.startswith("before\n") and first.endswith("\nafter\n") and "\nold\n" not in first
    assert "31 tokens per second, by PyTorch alone at 7" in first
    path, kept_aside = (root / "docs" / "results" / f"{name}.json" for name in ("pareto-table2", "kept_aside"))
    table, kept = json.loads(path.read_text()), json.loads(kept_aside.read_text())
    kept["tenth"]["mean"]["fewfire"] = 50.0
    table["judgement"][0]["passed"] = not table["judgement"][0]["passed"]
    path.write_text(json.dumps(table))
    kept_aside.write_text(json.dumps(kept))
    assert TOOL["main"]([*options, "--check"]) == 1
    assert TOOL["main"](options) == 0
    second = (root / "README.md").read_text()
    assert "a mean test error of 50.0% against" in second
    assert len([1 for a, b in zip(first.splitlines(), second.splitlines(), strict=True) if a != b]) == 2


def test_a_row_that_went_is_reported(root):
    (root / "docs" / "results.md").write_text("nothing\n")
    with pytest.raises(SystemExit, match="has no row of `python benchmarks/sparse_transformer.py F`"):
        TOOL["lines"](root / "docs")
