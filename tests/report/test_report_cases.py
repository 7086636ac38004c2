"""Figures, findings and page of stores at the edges: no success, all diverged, all failed, one cell, none."""

import warnings

import numpy as np
import pytest
from made_up_store import cell, frontier_store, row, spec, store_of

from fewfire.networks import init
from fewfire.report import findings_info, frontier_info, plot_convergence, plot_even_odds, plot_frontier, save_figures
from fewfire.report._figure import log_axis
from fewfire.report._page import render_page

FIGURES = ["frontier", "even-odds", "success", "convergence", "curves"]


def everywhere(runs, **more):
    """These runs in every cell of a map of two starts, two widths and three sizes."""
    starts, widths, sizes = (init.dense(), init.sparse(2)), (5, 20), (100, 200, 400)
    places = [{"start": start, "width": width, "samples": m} for start in starts for width in widths for m in sizes]
    return [run for place in places for run in runs(**place, **more)]


def never_successful(**where):
    return cell([None, None], **where)


def ended(status, trials=2, message="boom"):
    return lambda **where: [row(spec(trial=trial, **where), status=status, message=message) for trial in range(trials)]


CASES = {
    "no success": (everywhere(never_successful), 1),
    "all diverged": (everywhere(ended("diverged")), 1),
    "all failed": (everywhere(ended("failed")), 1),
    "one cell": (cell([20]), 1),
    "one cell without success": (cell([None]), 1),
    "online without success": (cell([None], samples=None), 1),
    "a group without success before one with": (cell([None, None]) + cell([20, 20], learning_rate=0.3), 2),
    "nothing": ([], 0),
}


@pytest.mark.parametrize("case", CASES)
def test_every_figure_is_drawn_and_the_page_written(case, tmp_path):
    pytest.importorskip("matplotlib")
    rows, groups = CASES[case]
    store = store_of(*rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = save_figures(store, tmp_path, ("png", "pdf"))
    numbers = [""] if groups == 1 else [f"-{number}" for number in range(1, groups + 1)]
    names = [f"{name}{number}.{kind}" for number in numbers for name in FIGURES for kind in ("png", "pdf")]
    assert [path.name for path in written] == names and all(path.stat().st_size > 1000 for path in written)
    assert len(frontier_info(store)) == groups
    assert render_page(store).startswith("<!doctype html>")


def test_an_empty_panel_shows_why():
    pytest.importorskip("matplotlib")
    (group,) = frontier_info(store_of(*everywhere(never_successful)))
    for axis in plot_convergence(group).axes:
        assert [text.get_text() for text in axis.texts] == ["no run succeeds"]
    (group,) = frontier_info(store_of(*everywhere(ended("failed"))))
    assert plot_even_odds(group).axes[0].texts[0].get_text() == "no finished runs on a training set"
    mixed = [
        *cell([20, 20], width=5, samples=100),
        *cell([None, None], width=5, samples=100, start=init.sparse(2)),
    ]
    dense, sparse = plot_convergence(frontier_info(store_of(*mixed))[0]).axes
    assert not dense.texts and sparse.texts[0].get_text() == "no run succeeds"


def test_no_line_where_the_frontier_is_not_on_the_map():
    pytest.importorskip("matplotlib")
    for runs in (never_successful, lambda **where: cell([20, 20], **where)):
        (group,) = frontier_info(store_of(*everywhere(runs)))
        figure = plot_frontier(group, theory=True)
        assert not any(axis.lines or axis.collections for axis in figure.axes[:2]) and not figure.legends
        # Even odds are arrows then, and no line joins them.
        assert np.isnan(plot_even_odds(group).axes[0].containers[0].lines[0].get_ydata()).all()


def test_lines_end_at_the_edge_and_stand_alone_upright():
    pytest.importorskip("matplotlib")
    shares = {5: (0, 0, 0), 10: (0, 0, 0), 20: (0, 2, 2), 40: (2, 2, 2), 80: (2, 2, 2)}
    rows = [
        run
        for width, counts in shares.items()
        for samples, won in zip((100, 200, 400), counts, strict=True)
        for run in cell([20 if trial < won else None for trial in range(2)], width=width, samples=samples)
    ]
    (line,) = plot_frontier(frontier_info(store_of(*rows))[0]).axes[0].lines
    np.testing.assert_allclose(line.get_xydata(), [[np.nan, 0], [2.5, 1], [0.5, 2], [-0.5, 3], [np.nan, 4]])
    alone = [run for run in rows if run.setting == spec(width=20, samples=100).setting]
    alone += cell([20, 20], width=20, samples=200)
    (line,) = plot_frontier(frontier_info(store_of(*alone))[0]).axes[0].lines
    np.testing.assert_allclose(line.get_xydata(), [[0.5, -0.3], [0.5, 0.3]])


def test_findings_do_not_speak_of_success_where_there_is_none():
    def texts(*rows):
        return [(finding.holds, finding.text) for finding in findings_info(frontier_info(store_of(*rows))[0])]

    assert texts(*everywhere(ended("diverged"))) == [
        (False, "No run succeeds from a dense start: all 12 runs diverged."),
        (False, "No run succeeds from a sparse(s=2) start: all 12 runs diverged."),
    ]
    ended_well = [row(spec(trial=0)), row(spec(trial=1), status="diverged"), row(spec(trial=2), status="diverged")]
    expected = "No run succeeds from a dense start: of 3 runs 2 diverged and 1 ended above the success error."
    assert texts(*ended_well) == [(False, expected)]
    expected = "No run succeeds from a dense start: its only run ended above the success error."
    assert texts(*cell([None])) == [(False, expected)]
    assert texts(*everywhere(ended("failed"))) == []
    one_sided = [*cell([20, 20]), *cell([None, None], start=init.sparse(2))]
    first, second = texts(*one_sided)
    assert first[1] == "No run succeeds from a sparse(s=2) start: all 2 runs ended above the success error."
    assert second[1].startswith("Whether a sparse start helps is not clear: 0% of the runs succeed from sparse(s=2)")


def test_theory_lines_have_a_legend():
    pytest.importorskip("matplotlib")
    (group,) = frontier_info(frontier_store())
    (legend,) = plot_frontier(group, theory=True).legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["equal cost (Proposition 3)", "half of the runs succeed", "95% interval of that"]


@pytest.mark.parametrize(
    ("data", "ticks"),
    [
        ((120.0, 130.0), ["100", "200"]),
        ((80.0, 700.0), ["100", "200", "500"]),
        ((20.0, 3000.0), ["30", "100", "300", "1,000", "3,000"]),
        ((0.02, 0.9), ["0.03", "0.1", "0.3", "1"]),
        ((2.0, 40_000.0), ["10", "100", "1,000", "10,000"]),
    ],
)
def test_logarithmic_axes_have_ticks_to_read(data, ticks):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axis = figure.subplots()
    axis.plot([1, 2], data)
    log_axis(axis, "y")
    shown = [label.get_text() for label in axis.get_yticklabels()]
    assert shown == ticks and axis.get_ylim()[0] < data[0] and axis.get_ylim()[1] > data[1]


def test_an_axis_without_data_stays_linear():
    axis = pytest.importorskip("matplotlib.figure").Figure().subplots()
    log_axis(axis, "x")
    assert axis.get_xscale() == "linear"
