"""Every recipe has a figure: it is drawn from the stored results, labelled, and small."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fewfire.papers import recipes
from fewfire.papers.pareto.recipes._grid import group_of

RESULTS = Path(__file__).parents[2] / "docs" / "results"
LARGEST = 60_000
"""Bytes of a figure."""
WIDEST = 9.2
"""Inches across: two columns of a paper are 7, so text of 8 points is read there as 6."""
NOT_CONFIRMED = {
    "pareto/table2",
    "parities/error-terms",
    "sparse-activations/inside-the-class",
    "sublinear/cost",
    "sublinear/robust-loss",
    "pareto/lottery-tickets",
    "pareto/offline-parity",
    "pareto/over-sparse",
}
"""Recipes with a claim that fails, and is reported so."""


def stored(name):
    return json.loads((RESULTS / f"{name.replace('/', '-')}.json").read_text())


@cache
def drawn_once(name):
    pytest.importorskip("matplotlib")
    return recipes.plot(stored(name))


def test_the_figure_of_every_recipe_stands_with_its_paper():
    for name in recipes.RECIPES:
        paper, figure = name.split("/")[0].replace("-", "_"), recipes.find(name).figure
        assert figure.__name__.startswith("plot_") and figure.__module__.startswith(f"fewfire.papers.{paper}.recipes.")


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_stored_results_are_of_this_recipe_and_hold_but_where_listed(name):
    info = stored(name)
    assert info["recipe"] == name and info["scale"] == "quick"
    assert info["passed"] == (name not in NOT_CONFIRMED)
    again = recipes.RecipeResult.from_dict(info).to_dict()
    assert again == info and list(again) == list(info)  # read and written again it is the same file
    assert 1000 < (RESULTS / f"{name.replace('/', '-')}.png").stat().st_size < LARGEST


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_figures_are_labelled_and_small(name, tmp_path):
    figure = drawn_once(name)
    assert figure.get_suptitle() or any(axes.get_title() for axes in figure.axes)
    drawn = [axes for axes in figure.axes if axes.lines or axes.collections or axes.patches or axes.images]
    assert drawn
    shared = figure.get_supxlabel()
    assert figure.get_size_inches()[0] <= WIDEST and figure.get_size_inches()[1] <= 1.2 * WIDEST
    for axes in drawn:
        assert shared or axes.get_xlabel() or axes.get_ylabel(), name
    recipes.save_figure(recipes.RecipeResult.from_dict(stored(name)), tmp_path / "figure.png")
    data = (tmp_path / "figure.png").read_bytes()
    assert data.startswith(b"\x89PNG") and 1000 < len(data) < LARGEST


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_figures_as_pdf(name, tmp_path):
    pytest.importorskip("matplotlib")
    recipes.save_figure(stored(name), tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_figures_are_drawn_into_axes_of_yours_and_show_themselves(name):
    pyplot = pytest.importorskip("matplotlib.figure")
    info = stored(name)
    own = drawn_once(name)
    assert hasattr(own, "_repr_png_") and hasattr(own, "_repr_html_")
    panels = [axes for axes in own.axes if axes.get_label() != "<colorbar>"]
    figure = pyplot.Figure(figsize=(4 * len(panels), 4))
    mine = figure.subplots(1, len(panels), squeeze=False).ravel()
    assert recipes.plot(info, ax=mine) is figure
    assert figure.get_suptitle() == "" and not figure.legends
    assert [len(axes.lines) for axes in mine] == [len(axes.lines) for axes in panels]
    with pytest.raises(ValueError, match="ax must be "):
        recipes.plot(info, ax=[*mine, mine[0]])


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_a_result_without_its_data_is_refused(name):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="info must hold .* Remedy: pass what the recipe returned."):
        recipes.plot({"recipe": name})


def test_another_result_is_refused():
    with pytest.raises(ValueError, match="info must be the result of one of pareto/convergence-time, .*; got 'a/b'."):
        recipes.plot({"recipe": "a/b"})


def row(width, samples, steps):
    won = sum(step is not None for step in steps)
    return {"start": "sparse", "width": width, "samples": samples, "trials": 4, "successes": won, "steps": steps}


INFO = {
    "parameters": {"n": 30, "k": 3, "trials": 4},
    "rows": [
        row(10, 100, [None] * 4),
        row(10, None, [100, 200, 300, None]),
        row(10, 400, [100, 300, None, None]),
        row(50, 100, [9, 9, 9, 9]),
        row(50, 400, [8, 8, 8, 8]),
        row(50, None, [7, 7, 7, 7]),
    ],
}


def test_grids_become_frontiers():
    group = group_of(INFO)
    assert group.widths == (10, 50) and group.samples == (100, 400, None) and group.label == "(30, 3)-parity"
    (frontier,) = group.frontiers
    assert frontier.start == "2-sparse"
    assert frontier.success.tolist() == [[0.0, 0.5, 0.75], [1.0, 1.0, 1.0]]
    assert frontier.half.tolist() == [pytest.approx(400.0), 0.0]
    # Runs that did not converge are the longest: no median where half of them did not, no quartile where a quarter.
    assert np.isnan(frontier.steps[:, 0, 0]).all()
    assert frontier.steps[:2, 0, 2].tolist() == [200.0, 300.0]
    assert frontier.steps[:, 1, 0].tolist() == [9.0, 9.0, 9.0]
