"""The README's code runs and prints what it says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def test_there_is_code_to_run():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_code_blocks(block, capsys, tmp_path, monkeypatch):
    """A line `print(...)  # text` must print that text."""
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    expected = re.findall(r"^print\(.*\)  # (.*)$", block, re.M)
    assert capsys.readouterr().out.splitlines() == expected
