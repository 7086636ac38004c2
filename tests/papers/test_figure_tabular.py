"""The figure of pareto/table2: a panel per data set, a dot with its interval per model, with the paper's figures."""

import pytest

from fewfire import InvalidArgument
from fewfire.papers.pareto.recipes.table2 import plot_tabular

pytest.importorskip("matplotlib")


PRINTED = {0.1: {"network": 4.2, "forest": 4.0}, 0.01: {"network": 12.3, "forest": 10.0}}


def row(dataset, fraction, model, median, width=None, whole=True):
    return {
        "dataset": dataset, "fraction": fraction, "training_rows": round(9000 * fraction), "whole": whole, "model": model,
        "family": "paper-network" if width else "", "settings": {"width": width}, "median": median, "low": median - 0.01,
        "high": median + 0.02, "published": PRINTED[fraction], "quoted": {"network": 6.3, "forest": 1.9},
    }  # fmt: skip


def dots(axis):
    """Error and line of every dot, a list per share of the rows."""
    return [container.lines[0].get_xydata().round(6).tolist() for container in axis.containers]


def test_panels_dots_and_crosses():
    rows = [row("pol", f, f"{kind}-100", 0.1 + f, 100) for f in (0.1, 0.01) for kind in ("sparse", "dense")]
    rows += [row("pol", f, "forest", 0.2) for f in (0.1, 0.01)] + [row("heloc", 0.01, "mlp", 0.3, whole=False)]
    rows += [{"dataset": "pol", "fraction": 0.1, "model": "failed", "family": ""}]
    figure = plot_tabular({"rows": rows})
    pol, heloc = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["pol (90, 900 rows)", "heloc (90 rows)"]
    names = [label.get_text() for label in pol.get_yticklabels()]
    assert names == ["sparse-100", "dense-100", "forest", "mlp", "paper's best network", "paper's best forest"]
    assert dots(pol) == [
        [[11, -0.15], [11, 0.85], [20, 1.85]],
        [[20, 0.15], [20, 1.15], [20, 2.15]],
    ]
    (low, high), *_ = pol.containers[0].lines[2][0].get_segments()
    assert (low[0], high[0]) == (pytest.approx(10), pytest.approx(13))
    crosses = [line.get_xydata().round(6).tolist() for line in pol.lines if line.get_marker() == "x"]
    assert crosses == [[[12.3, 3.85], [10.0, 4.85]], [[4.2, 4.15], [4.0, 5.15]]]
    assert [line.get_xdata()[0] for line in pol.lines if line.get_linestyle() in (":", "--")] == [6.3, 1.9]
    assert pol.get_ylim() == (5.6, -0.6)  # the first model on top
    assert not any(line.get_marker() == "x" for line in heloc.lines)  # not the paper's rows
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["0.01 of the rows", "0.1 of the rows", "tuned network, all rows", "tuned forest, all rows"]


def test_many_data_sets_take_several_lines():
    figure = plot_tabular({"rows": [row(f"set {number}", 0.1, "forest", 0.2) for number in range(5)]})
    assert len(figure.axes) == 5 and [axis.get_subplotspec().rowspan.start for axis in figure.axes] == [0, 0, 0, 1, 1]
    assert figure.get_figwidth() < 12


def test_nothing_to_draw():
    with pytest.raises(InvalidArgument, match="info must hold measured rows; got 'none'. Remedy: pass what the recipe"):
        plot_tabular({"rows": []})
