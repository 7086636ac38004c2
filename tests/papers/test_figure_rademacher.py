"""The Rademacher drawing: needs matplotlib, draws plain data and nothing else."""

import sys

import pytest

from fewfire import MissingDependency
from fewfire.papers.sparse_activations.recipes.rademacher import plot_rademacher

ROW = {
    "estimate": 0.5,
    "standard_error": 0.1,
    "theorem_19": 9.0,
    "explicit": 8.0,
    "conjecture_20": 1.0,
    "classical": 2.0,
}
INFO = {
    "over_s": [ROW | {"s": s, "k": 1} for s in (1, 2, 4)],
    "over_k": [ROW | {"s": 4, "k": k} for k in (1, 2, 4)],
    "on_sample": [
        ROW | {"points": points, "s": 2, "k": k, "n": 16, "m": 8} for points in ("orthogonal", "random") for k in (1, 2)
    ],
}


def test_all_panels_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    figure = plot_rademacher(INFO)
    left, right, shares = figure.axes
    assert left.get_xlabel() == "hidden neurons s, k = 1" and right.get_xlabel() == "active neurons k, s = 4"
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels == [
        "Theorem 19, eq. (15)",
        "eq. (15), every constant",
        "Conjecture 20",
        "classical",
        "lower estimate",
    ]
    assert list(left.lines[0].get_ydata()) == [9.0, 9.0, 9.0] and list(right.lines[0].get_xdata()) == [1, 2, 4]
    labels = [text.get_text() for text in shares.get_legend().get_texts()]
    assert labels == ["√2", "sparse on the whole cube", "orthogonal points", "random points, n = 2 m"]
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_missing_rows_are_named():
    with pytest.raises(
        ValueError,
        match="info must hold over_s, over_k and on_sample; got a mapping without over_k, on_sample. Remedy: pass what the recipe returned.",
    ):
        plot_rademacher({"over_s": INFO["over_s"]})


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        MissingDependency, match=r"a figure needs the package .* Remedy: pip install 'fewfire\[plot\]'."
    ):
        plot_rademacher(INFO)
