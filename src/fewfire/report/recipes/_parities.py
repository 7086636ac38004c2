"""Figures of parities, and of the recipes of pareto that fit single parities: errors beside what the claims allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

TITLES = {
    "pareto/over-sparse": "pareto, Theorem 4: one step from an over-sparse start",
    "pareto/under-sparse": "pareto, Theorem 5: one step from an under-sparse start",
}


def plot_fits(info: Mapping[str, Any]) -> Figure:
    """The test error of every fit, beside the most that the claim allows and what guessing gives."""
    rows, judgements, name = rows_of(info, "rows", "judgement", "recipe")
    sizes = list(dict.fromkeys((row["n"], row["k"]) for row in rows))
    figure, (axis,) = canvas(size=(6.2, 1.7 + 0.6 * len(sizes)))
    for place, (size, entry) in enumerate(zip(sizes, judgements, strict=True)):
        mine = [row for row in rows if (row["n"], row["k"]) == size]
        allowed = axis.barh(place, entry["threshold"], height=0.5, color="#cfe3ef", edgecolor=colour(0))
        points = axis.scatter(
            [row["error"] for row in mine], [place] * len(mine), color=colour(1), zorder=3, clip_on=False
        )
    guess = axis.axvline(0.5, color="black", linestyle=":")
    labels = [_label(next(row for row in rows if (row["n"], row["k"]) == size)) for size in sizes]
    axis.set_yticks(range(len(sizes)), labels)
    axis.set_ylim(len(sizes) - 0.5, -0.5)
    axis.set_xlim(0, 0.52)
    axis.set_xlabel("test error")
    axis.set_title(TITLES.get(name, name), fontsize=11)
    handles, names = [points, allowed.patches[0], guess], ["measured", "allowed by the claim", "guessing"]
    figure.legend(handles, names, ncols=3, loc="outside lower center", frameon=False, fontsize=9)
    return figure


def plot_theorem_2(info: Mapping[str, Any]) -> Figure:
    """parities/theorem-2: the held-out error of seed 0 by step, and the test error of every seed by size and mode."""
    rows, curves, judgements = rows_of(info, "rows", "curves", "judgement")
    figure, (left, right) = canvas(2, size=(9.6, 3.9))
    sizes = list(dict.fromkeys((curve["n"], curve["k"]) for curve in curves))
    for curve in curves:
        place = sizes.index((curve["n"], curve["k"]))
        own = curve["mode"] == "theorem"
        label = None if own else f"({curve['n']}, {curve['k']}), width {curve['width']}"
        left.plot(curve["step"], curve["held_out"], color=colour(place), linestyle=":" if own else "-", label=label)
    left.plot([], [], color="black", linestyle=":", label="the theorem's rate")
    left.set_xlabel("step t")
    left.set_ylabel("error on held-out rows, seed 0")
    left.set_ylim(bottom=0)
    left.set_title("Gradient descent on both layers", fontsize=11)
    left.legend(frameon=False, fontsize=8)
    groups = list(dict.fromkeys((row["mode"], row["n"], row["k"]) for row in rows))
    allowed = [1 - entry["threshold"] for entry in judgements]
    for place, group in enumerate(groups):
        mine = [row for row in rows if (row["mode"], row["n"], row["k"]) == group]
        if group[0] != "theorem":
            right.barh(place, allowed.pop(0), height=0.6, color="#cfe3ef", edgecolor=colour(0))
        errors = [row["error"] for row in mine]
        right.scatter(errors, [place] * len(mine), color=colour(1), zorder=3, s=14, clip_on=False)
    right.set_yticks(range(len(groups)), [f"{mode}\n({n}, {k})" for mode, n, k in groups], fontsize=8)
    right.set_ylim(len(groups) - 0.5, -0.5)
    right.set_xlim(left=0)
    right.set_xlabel("test error; bars: what the mean may be")
    right.set_title("Every seed, at its chosen iterate", fontsize=11)
    return figure


TERMS = {"separator_norm": "k¹⁰/q", "drift": "k⁸/√q", "initial_output": "qk/√n", "step_size": "k²√q/T"}


def plot_error_terms(info: Mapping[str, Any]) -> Figure:
    """parities/error-terms: every seed's error as one resource changes, above the four terms of the bound."""
    (rows,) = rows_of(info, "rows")
    resources = list(dict.fromkeys(row["resource"] for row in rows))
    figure, axes = canvas(len(resources), rows=2, size=(11.0, 4.6), sharey="row")
    for place, resource in enumerate(resources):
        mine = [row for row in rows if row["resource"] == resource]
        values = [row[resource] for row in mine]
        above, below = axes[place], axes[len(resources) + place]
        for value, row in zip(values, mine, strict=True):
            above.scatter([value] * len(row["errors"]), row["errors"], color=colour(1), s=10, clip_on=False)
        above.plot(values, [sum(row["errors"]) / len(row["errors"]) for row in mine], color=colour(0), label="mean")
        for number, (name, label) in enumerate(TERMS.items()):
            below.plot(values, [row[name] for row in mine], color=colour(number), marker=MARKERS[number], label=label)
        above.set_xscale("log")
        below.set_xscale("log")
        for axis in (above, below):
            axis.set_xticks(values, [str(value) for value in values], fontsize=7)
            axis.minorticks_off()
            axis.set_xlabel(resource)
    axes[0].set_ylabel("test error")
    axes[0].set_ylim(bottom=0)
    axes[len(resources)].set_ylabel("terms of the bound")
    axes[len(resources)].set_yscale("log")
    handles, labels = axes[len(resources)].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=4, loc="outside lower center", frameon=False, fontsize=9)
    figure.suptitle("parities, Theorem 2: the error, and the terms that bound it", fontsize=11)
    return figure


def plot_separation(info: Mapping[str, Any]) -> Figure:
    """parities/separation: accuracy of every method, a marker per setting; dotted lines are the best half-spaces."""
    (rows,) = rows_of(info, "rows")
    settings = list(dict.fromkeys((row["n"], row["k"]) for row in rows))
    methods = [name for name in dict.fromkeys(row["method"] for row in rows) if name != "halfspace"]
    figure, (axis,) = canvas(size=(6.6, 4.0))
    for place, (n, k) in enumerate(settings):
        scores = {row["method"]: row["accuracy"] for row in rows if (row["n"], row["k"]) == (n, k)}
        shift = 0.14 * (place - (len(settings) - 1) / 2)
        heights = [at + shift for at in range(len(methods))]
        style: dict[str, Any] = {"linestyle": "none", "marker": MARKERS[place], "color": colour(place)}
        axis.plot([scores[name] for name in methods], heights, **style, label=f"(n, k) = ({n}, {k})")
        if k not in [bits for _, bits in settings[:place]]:
            axis.axvline(scores["halfspace"], color=colour(place), linestyle=":", label=f"best half-space, k = {k}")
    axis.set_yticks(range(len(methods)), methods)
    axis.invert_yaxis()
    axis.set_xlabel("test accuracy")
    axis.set_title("Correlated parity: the network beside fixed features", fontsize=11)
    figure.legend(ncols=min(2, len(settings)), loc="outside lower center", frameon=False, fontsize=9)
    return figure


def _label(row: Mapping[str, Any]) -> str:
    return f"({row['n']}, {row['k']})-parity\nwidth {row['width']}\n{row['samples']:,} samples"
