"""The drawings of sublinear's recipes: what lines they hold."""

import pytest

from fewfire.papers.sublinear.recipes.activity import plot_activity
from fewfire.papers.sublinear.recipes.digits import plot_robust_accuracy
from fewfire.papers.sublinear.recipes.robust_loss import plot_robust_loss


def start(width, name, factor):
    return {
        "width": width,
        "threshold": name,
        "exact": width * factor,
        "mean": width * factor + 1,
        "bound": 2 * width * factor,
    }


ACTIVITY = {
    "start": [
        start(width, name, factor)
        for width in (64, 256)
        for name, factor in (("theorem", 0.5), ("lemma", 0.4), ("quantile", 0.1))
    ],
    "training": [{"width": width, "mean_active": [5.0, 6.0, 7.0]} for width in (64, 256)],
}
LOSS = {
    "parameters": {"rho": 0.2},
    "iteration": [0, 10, 19],
    "rows": [{"robust": {"robust_loss": [0.7, 0.5, 0.3], "clean_loss": [0.7, 0.3, 0.1]}}] * 2,
    "theorem": {
        "horizons": [25, 100],
        "average_robust_loss": {"theorem": [[1.0, 0.9]] * 2, "printed": [[1.0, 0.8]] * 2},
    },
}
ACCURACY = {
    "radii": [0.0, 0.5],
    "accuracy": {"robust": [0.9, 0.7], "plain": [0.9, 0.4]},
    "certified": {"robust": [0.9, 0.2], "plain": [0.9, 0.1]},
}


def test_activity_has_three_thresholds_a_bound_and_the_diagonal():
    pytest.importorskip("matplotlib")
    left, right = plot_activity(ACTIVITY).axes
    assert len(left.lines) == 3 * 2 + 1 + 1 and list(left.lines[0].get_ydata()) == [32.0, 128.0]
    assert list(left.lines[-1].get_ydata()) == [64, 256]
    assert [line.get_label() for line in right.lines] == ["m = 64", "m = 256"]


def test_losses_have_a_curve_a_seed():
    pytest.importorskip("matplotlib")
    left, right = plot_robust_loss(LOSS).axes
    assert [list(line.get_ydata()) for line in left.lines[:2]] == [[0.7, 0.5, 0.3]] * 2
    assert [list(line.get_ydata()) for line in left.lines[2:]] == [[0.7, 0.3, 0.1]] * 2 and len(
        left.get_legend().get_texts()
    ) == 2
    assert list(right.lines[1].get_xdata()) == [25, 100] and list(right.lines[3].get_ydata()) == [1.0, 0.8]


def test_accuracies_have_a_line_a_model():
    pytest.importorskip("matplotlib")
    left, right = plot_robust_accuracy(ACCURACY).axes
    assert (left.get_title(), right.get_title()) == ("under attack", "proved")
    assert [list(line.get_ydata()) for line in right.lines] == [[0.9, 0.2], [0.9, 0.1]]
    assert left.get_ylim() == (0, 1)
