"""The code of the README and of the pages of docs/ runs and prints what it shows."""

import re
from pathlib import Path

import pytest

from fewfire.problems._base import PROBLEMS
from fewfire.tabular._trees import load_lightgbm

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S))
]


def test_there_is_code_to_run():
    assert len(BLOCKS) >= 5


@pytest.fixture
def problems():
    """Problems that a page registers are forgotten after it."""
    before = set(PROBLEMS)
    yield
    for name in set(PROBLEMS) - before:
        PROBLEMS.remove(name)


@pytest.mark.usefixtures("problems")
@pytest.mark.parametrize("block", BLOCKS)
def test_code_blocks(request, block, capsys, tmp_path, monkeypatch):
    """A line `print(...)  # text` must print that text, in order; other lines may print what they like.

    After `# about 0.96` a number that is at most 0.03 from it must be printed.
    """
    if "import torch" in block:
        pytest.importorskip("torch")
    if "Tabular" in block:
        load_lightgbm()  # where it cannot be, the test is skipped
    # Counters show what a tree leaves out, which the NumPy code, a scan, does not; sweeps take it many minutes.
    if "index.counters" in block or "Sweep." in block:
        request.getfixturevalue("core")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs", "exec"), {})
    printed = iter(capsys.readouterr().out.splitlines())
    for expected in re.findall(r"^print\(.*\)  # (.*)$", block, re.M):
        assert any(shows(line, expected) for line in printed), f"{expected!r} was not printed, or not in this place"


def shows(line, expected):
    if not expected.startswith("about "):
        return line == expected
    return bool(re.fullmatch(r"[\d.]+", line)) and abs(float(line) - float(expected.removeprefix("about "))) <= 0.03
