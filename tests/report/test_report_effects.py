"""The figure of a tabular model's effects: panels, what they show, axes of one's own, what is refused."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewfire import InvalidArgument, TabularClassifier
from fewfire.report import plot_effects
from fewfire.tabular._effects import EffectCurve, Effects

pytest.importorskip("matplotlib")


def made_up(outputs=("y",), columns=4):
    """Columns of falling importance; the second one holds categories, the third has gaps."""
    curves = []
    for place in range(columns):
        values = {1: ("small", "large", None), 2: (0.0, 1.0, None)}.get(place, (0.0, 1.0, 2.0))
        mean = np.outer(np.arange(3.0), np.ones(len(outputs))) / (1 + place)
        kind = "category" if place == 1 else "number"
        curves.append(EffectCurve(f"column {place}", kind, values, mean, mean - 0.1, mean + 0.1))
    importance = 1 / (1 + np.arange(columns))
    measure = "share of the variance" if len(outputs) == 1 else "log loss"
    found = (importance, importance - 0.1, importance + 0.1)
    return Effects("Made", *found, measure, tuple(curves), outputs, 100)


def test_importances_and_curves_on_one_scale():
    figure = plot_effects(made_up(), columns=3)
    bars, first, second, third = figure.axes
    assert [tick.get_text() for tick in bars.get_yticklabels()] == ["column 0", "column 1", "column 2"]
    assert bars.get_xlabel() == "lost without the column:\nshare of the variance"
    assert [axes.get_xlabel() for axes in (first, second, third)] == ["column 0", "column 1", "column 2"]
    assert [tick.get_text() for tick in second.get_xticklabels()] == ["small", "large", "missing"]
    assert third.texts[0].get_text() == "dotted: missing" and not first.texts
    assert first.get_ylim() == second.get_ylim() == third.get_ylim()
    assert first.get_legend() is None and first.get_ylabel() == "y"
    named = "lost without the column: share of the variance, y by column 0, y by column 1, y by column 2"
    assert figure._repr_html_().startswith(f'<img alt="{named}" ')
    assert figure._repr_png_()[:4] == b"\x89PNG" and figure.get_size_inches()[0] < 7.2


def test_classes_have_a_line_each_and_a_legend():
    figure = plot_effects(made_up(("probability of a", "probability of b", "probability of c"), columns=1))
    assert [text.get_text() for text in figure.axes[1].get_legend().get_texts()] == ["a", "b", "c"]
    assert figure.axes[1].get_ylabel() == "probability"


def test_a_model_is_explained_first_and_axes_may_be_given():
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = TabularClassifier(hidden=(8,), members=2, scaling="rank", trees=False, random_state=0)
    model.fit(X, (X[:, 0] > 0).astype(int))
    own = Figure()
    axes = own.subplots(1, 3)
    assert plot_effects(model, X, ax=axes) is own
    assert axes[1].get_xlabel() == "x0" and axes[1].get_ylabel() == "probability of 1"


def test_what_is_refused():
    with pytest.raises(InvalidArgument, match=r"effects must be Effects, or a model and the rows.*got a list.*explain"):
        plot_effects([])
    with pytest.raises(InvalidArgument) as caught:
        plot_effects(make_pipeline(StandardScaler(), TabularClassifier()), [[1.0]])
    assert str(caught.value) == (
        "effects must be Effects, or a model and the rows to explain it on; got a Pipeline. "
        "Remedy: pass pipeline[-1].explain(pipeline[:-1].transform(X), y)."
    )
    with pytest.raises(InvalidArgument, match=r"got a TabularClassifier without X"):
        plot_effects(TabularClassifier())
    with pytest.raises(InvalidArgument, match=r"ax must be 5 axes of matplotlib"):
        plot_effects(made_up(), ax=plot_effects(made_up()).axes[:2])
    with pytest.raises(InvalidArgument, match=r"columns must be an integer of at least 1"):
        plot_effects(made_up(), columns=0)
