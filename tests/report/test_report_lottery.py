"""The lottery drawing: three panels of plain data."""

import pytest

from fewfire.report import plot_lottery

INFO = {
    "step": [0, 10, 100],
    "wide": [0.5, 0.3, 0.0],
    "rewound": [[0.5, 0.4, 0.05], [0.5, 0.5, 0.5]],
    "redrawn": [[0.5, 0.5, 0.5]],
}


def test_three_panels(tmp_path):
    pytest.importorskip("matplotlib")
    figure = plot_lottery(INFO)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["wide network: 1 of 1 learn", "rewound neurons: 1 of 2 learn", "redrawn neurons: 0 of 1 learn"]
    assert [list(line.get_ydata()) for line in figure.axes[1].lines] == INFO["rewound"]
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_missing_curves_are_named():
    with pytest.raises(
        ValueError, match="info must hold step, wide, rewound and redrawn; got a mapping without redrawn"
    ):
        plot_lottery(INFO | {"redrawn": []})
