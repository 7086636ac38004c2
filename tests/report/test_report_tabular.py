"""Figure 6: a column a data set, dense above sparse, a line a width and a model, the paper's figures beside."""

import pytest

from fewfire import InvalidArgument
from fewfire.report import plot_tabular

pytest.importorskip("matplotlib")


PRINTED = {0.1: {"network": 4.2, "forest": 4.0}, 0.01: {"network": 12.3, "forest": 10.0}}


def row(dataset, fraction, model, median, width=None, whole=True):
    return {
        "dataset": dataset, "fraction": fraction, "training_rows": round(9000 * fraction), "whole": whole, "model": model,
        "family": "paper-network" if width else "", "settings": {"width": width}, "median": median, "low": median - 0.01,
        "high": median + 0.02, "published": PRINTED[fraction], "quoted": {"network": 6.3, "forest": 1.9},
    }  # fmt: skip


def lines(axis):
    """Label-free content: colour and points of every line with error bars."""
    return [container.lines[0].get_xydata().round(6).tolist() for container in axis.containers]


def test_panels_lines_and_points():
    rows = [row("pol", f, f"{kind}-{w}", 0.1 + w / 1e4 + f, w) for f in (0.1, 0.01) for kind in ("sparse", "dense") for w in (100, 300)]  # fmt: skip
    rows += [row("pol", f, "forest", 0.2) for f in (0.1, 0.01)] + [row("heloc", 0.01, "mlp", 0.3, whole=False)]
    rows += [{"dataset": "pol", "fraction": 0.1, "model": "failed", "family": ""}]
    figure = plot_tabular({"rows": rows})
    upper, lower = figure.axes[0], figure.axes[2]
    assert len(figure.axes) == 4 and [axis.get_title() for axis in figure.axes] == ["pol", "heloc", "", ""]
    assert "dense start" in upper.get_ylabel() and "sparse start" in lower.get_ylabel()
    assert lines(upper) == lines(lower) == [
        [[90, 12], [900, 21]], [[90, 14], [900, 23]], [[90, 20], [900, 20]],
    ]  # fmt: skip
    crosses = [line.get_xydata().tolist() for line in upper.lines if line.get_marker() == "x"]
    assert [sorted(points) for points in crosses] == [[[90, 12.3], [900, 4.2]], [[90, 10.0], [900, 4.0]]]
    assert [line.get_ydata()[0] for line in upper.lines if line.get_linestyle() == ":"] == [6.3, 1.9]
    assert all(axis.get_xscale() == "log" and 50 < axis.get_xlim()[0] < 90 for axis in figure.axes)
    part = figure.axes[1]
    assert not any(len(line.get_xdata()) for line in part.lines if line.get_marker() == "x")  # not the paper's rows
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["width 100", "width 300", "forest", "paper's best network", "tuned network, full data",
                      "paper's best forest", "tuned forest, full data", "mlp"]  # fmt: skip


def test_nothing_to_draw():
    with pytest.raises(InvalidArgument, match="info must hold measured rows; got 'none'. Remedy: pass what the recipe"):
        plot_tabular({"rows": []})
