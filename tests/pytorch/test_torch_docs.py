"""The code of the pages on PyTorch models runs; it is apart from other pages' because it needs PyTorch."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sparse-inference.md").read_text(encoding="utf-8")
OTHER = (ROOT / "docs" / "sparse-autoencoders.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```py\n(.*?)```", PAGE + OTHER, re.S)
INDUCING = (ROOT / "docs" / "inducing-sparsity.md").read_text(encoding="utf-8")


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


def test_a_model_made_sparse_attacked_and_served(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```py\n(.*?)```", INDUCING, re.S)
    names = {}
    exec(compile(block, "docs", "exec"), names)
    printed = capsys.readouterr().out
    assert printed.startswith("['1']\n") and "  relu  " in printed and "AttackResult: " in printed
    model, served, X = names["model"], names["served"], names["X"]
    with names["torch"].inference_mode():
        assert names["torch"].allclose(served(X), model(X), atol=1e-4)
        assert (model(X[1400:]) > 0).any() and ((model[0](X[1400:]) > 0).float().mean() < 0.1)
