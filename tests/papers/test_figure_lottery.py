"""The lottery drawing: three panels of plain data per parity."""

import pytest

from fewfire.papers.pareto.recipes.lottery_tickets import plot_lottery

CURVES = {
    "wide": [{"step": [0, 10, 100], "error": [0.5, 0.3, 0.0]}],
    "rewound": [{"step": [0, 10], "error": [0.5, 0.05]}, {"step": [0, 100], "error": [0.5, 0.5]}],
    "redrawn": [{"step": [0, 100], "error": [0.5, 0.5]}],
}
STEPS = {"wide": [100, 10, None], "rewound": [10, None, 20], "redrawn": [None, None, None]}
INFO = {"parities": [{"n": 50, "k": k, "curves": CURVES, **STEPS} for k in (4, 5)]}


def test_three_panels_per_parity(tmp_path):
    pytest.importorskip("matplotlib")
    figure = plot_lottery(INFO)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        f"k = {k}, {title}"
        for k in (4, 5)
        for title in ("wide network: 2 of 3 learn", "rewound neurons: 2 of 3 learn", "redrawn neurons: 0 of 3 learn")
    ]
    drawn = [list(line.get_ydata()) for line in figure.axes[1].lines]
    assert drawn[:-1] == [curve["error"] for curve in CURVES["rewound"]]  # the last is the dotted line
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_missing_curves_are_named():
    with pytest.raises(ValueError, match="info must hold parities; got a mapping without parities"):
        plot_lottery({"parities": []})
