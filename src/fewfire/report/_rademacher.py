"""The Rademacher complexity of H(n, s, k): lower estimates under the bounds of sparse-activations, section 5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BOUNDS = {
    "theorem_19": "Theorem 19, eq. (15)",
    "explicit": "eq. (15), every constant",
    "conjecture_20": "Conjecture 20",
    "classical": "classical",
}

STYLES = (("#0072B2", "--"), ("#D55E00", "-."), ("#009E73", ":"), ("#CC79A7", (0, (5, 1))))
"""Colour and dashes of each bound."""


def plot_rademacher(info: Mapping[str, Any]) -> Any:
    """Draw estimates and bounds over s at fixed k, and over k at fixed s.

    Parameters
    ----------
    info : mapping with "over_s" and "over_k"
        Lists of rows with "s", "k", "estimate", "standard_error" and the bounds, as the recipe
        sparse-activations/rademacher returns them.

    Returns
    -------
    matplotlib.figure.Figure
        Of two panels; save it with its method `savefig`.
    """
    missing = [key for key in ("over_s", "over_k") if not info.get(key)]
    if missing:
        raise invalid("info", "must hold rows for over_s and over_k", missing, "pass what the recipe returned")
    figure = require("matplotlib.figure", "plot", "plot_rademacher").Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    _draw(panels[0], info["over_s"], "s", f"hidden neurons s, k = {info['over_s'][0]['k']}")
    _draw(panels[1], info["over_k"], "k", f"active neurons k, s = {info['over_k'][0]['s']}")
    panels[0].set_ylabel("Rademacher complexity")
    panels[0].legend(fontsize="small")
    figure.suptitle("Rademacher complexity of H(n, s, k): estimates from below, bounds from above", fontsize=11)
    return figure


def _draw(axes: Any, rows: Sequence[Mapping[str, float]], along: str, label: str) -> None:
    places = [row[along] for row in rows]
    for (name, title), (colour, style) in zip(BOUNDS.items(), STYLES, strict=True):
        axes.plot(places, [row[name] for row in rows], label=title, color=colour, linestyle=style)
    errors = [2 * row["standard_error"] for row in rows]
    values = [row["estimate"] for row in rows]
    axes.errorbar(places, values, yerr=errors, label="lower estimate", color="black", marker="o")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel(label)
