"""The code of docs/sparse-inference.md and docs/sparse-autoencoders.md runs; it is apart from other pages' because it needs PyTorch."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sparse-inference.md").read_text(encoding="utf-8")
OTHER = (ROOT / "docs" / "sparse-autoencoders.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```py\n(.*?)```", PAGE + OTHER, re.S)


def test_the_page_has_code_and_a_map():
    assert "ft.profile" in BLOCKS[0]
    assert re.search(r"<!-- map -->\n\| block \| fire \|.*<!-- /map -->", PAGE, re.S)


@pytest.mark.parametrize("block", BLOCKS)
def test_code_blocks(block, capsys):
    exec(compile(block, "docs", "exec"), {})
    printed = capsys.readouterr().out
    if "ft.SparseEncoder" in block:
        assert "SparseEncoder(128 inputs, 8192 features, 'jumprelu', 128 outputs)" in printed
    if "ft.profile" in block:
        assert "(model)  256→2048→256  relu" in printed and "1 of 1 blocks sparse" in printed
