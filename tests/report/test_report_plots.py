"""The figures for papers."""

import pickle
import sys

import numpy as np
import pytest
from made_up_store import cell, frontier_store, store_of

from fewfire import InvalidArgument, MissingDependency
from fewfire.report import (
    curves_info,
    frontier_info,
    plot_convergence,
    plot_curves,
    plot_even_odds,
    plot_frontier,
    plot_success,
    save_figures,
)


def test_without_matplotlib_the_error_names_the_remedy(monkeypatch):
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.colors"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MissingDependency,
        match=r"a figure needs the package 'matplotlib', which is not installed. Remedy: pip install 'fewfire\[plot\]'.",
    ):
        plot_frontier(frontier_info(frontier_store())[0])


@pytest.fixture
def group():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (make test installs it)")
    return frontier_info(frontier_store())[0]


def test_maps_show_the_shares(group):
    dense, sparse = plot_frontier(group, theory=True).axes[:2]
    assert (dense.get_title(), sparse.get_title()) == ("dense start", "sparse(s=2) start")
    np.testing.assert_array_equal(dense.images[0].get_array(), group.frontiers[0].success)
    assert [text.get_text() for text in dense.texts] == ["0%", "0%", "50%", "0%", "50%", "100%"]
    curve, half = sparse.lines
    # One half lies in the middle of 200–400 at width 5 and of 100–200 at width 20.
    np.testing.assert_allclose(half.get_xydata(), [[1.5, 0], [0.5, 1]])
    assert curve.get_linestyle() == "--" and len(curve.get_xydata()) == 2
    assert len(plot_frontier(group).axes[0].lines) == 1


def test_lines_show_success_and_convergence(group):
    axis = plot_success(group).axes[0]
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), [0.0, 0.0, 0.5])
    assert axis.get_xscale() == "log"
    axis = plot_convergence(group).axes[1]
    np.testing.assert_array_equal(axis.containers[1].lines[0].get_xydata(), [[200, 20], [400, 20]])
    assert axis.get_yscale() == "log"


def test_curves_are_those_of_the_cell(group):
    figure = plot_curves(group, curves_info(frontier_store()), 20, 200)
    dense, sparse = figure.axes
    assert (len(dense.lines), len(sparse.lines)) == (4, 4)  # two trials, training and test
    np.testing.assert_allclose(sparse.lines[1].get_ydata(), [0.5, 0.5, 0.05], rtol=1e-6)
    assert dense.get_xscale() == "symlog"


def test_online_data_come_last():
    pytest.importorskip("matplotlib")
    (group,) = frontier_info(store_of(*cell([10], samples=100), *cell([10], samples=None)))
    axis = plot_success(group).axes[0]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["100", "online"]
    assert axis.lines[0].get_xdata().tolist() == [100, 1000]


def test_files(tmp_path):
    pytest.importorskip("matplotlib")
    names = ["frontier", "even-odds", "success", "convergence", "curves"]
    written = save_figures(frontier_store(), tmp_path / "new", ("png", "pdf"))
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("png", "pdf")]
    heads = {path.suffix: path.read_bytes()[:4] for path in written}
    assert heads == {".png": b"\x89PNG", ".pdf": b"%PDF"}
    two = store_of(*cell([10]), *cell([10], learning_rate=0.3))
    assert [path.name for path in save_figures(two, tmp_path)][:6] == [f"{name}-1.png" for name in names] + [
        "frontier-2.png"
    ]


def test_figures_replace_files_whole_or_raise_where_they_cannot(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    (tmp_path / "frontier.png").write_bytes(b"old")
    (tmp_path / "taken").write_bytes(b"no folder")
    with pytest.raises(
        InvalidArgument, match=r"folder must be a folder that can be made \(File exists\); got '.*taken'"
    ):
        save_figures(frontier_store(), tmp_path / "taken")

    def full(figure, file, **options):
        file.write(b"half a picture")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(InvalidArgument, match=r"folder must be a folder that can be written to \(No space left on dev"):
        save_figures(frontier_store(), tmp_path)
    assert (tmp_path / "frontier.png").read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"frontier.png", "taken"}


DRAWINGS = {
    "frontier": lambda group, **where: plot_frontier(group, theory=True, **where),
    "success": plot_success,
    "convergence": plot_convergence,
    "curves": lambda group, **where: plot_curves(group, curves_info(frontier_store()), 20, 200, **where),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_axes_of_the_caller_are_drawn_into(group, name):
    from matplotlib.figure import Figure

    mine = Figure()
    axes = mine.subplots(1, 3)
    mine.suptitle("mine")
    assert DRAWINGS[name](group, ax=axes[1:]) is mine
    assert [axis.get_title() for axis in axes] == ["", "dense start", "sparse(s=2) start"]
    assert not axes[0].has_data() and axes[2].has_data()
    assert mine.get_suptitle() == "mine"
    with pytest.raises(InvalidArgument, match="ax must be 2 axes of matplotlib, one per panel; got .1 of Axes"):
        DRAWINGS[name](group, ax=axes[0])


def test_even_odds_take_one_axes(group):
    from matplotlib.figure import Figure

    mine = Figure()
    axis = mine.subplots()
    assert plot_even_odds(group, ax=axis) is mine and axis.has_data()
    with pytest.raises(InvalidArgument, match="ax must be an axes of matplotlib; got .1 of int"):
        plot_even_odds(group, ax=3)


def test_figures_show_themselves_and_travel(group):
    figure = plot_success(group)
    assert figure._repr_png_().startswith(b"\x89PNG")
    html = figure._repr_html_()
    assert html.startswith('<img alt="') and "dense start, sparse(s=2) start" in html[:300]
    again = pickle.loads(pickle.dumps(figure))
    assert again._repr_html_()[:200] == html[:200]
