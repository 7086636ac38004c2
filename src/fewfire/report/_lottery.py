"""Lottery tickets (pareto, C.2, Figure 5): the wide network, its rewound neurons, and redrawn ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Mapping


def plot_lottery(info: Mapping[str, Any]) -> Any:
    """Draw test error against steps in three panels: wide, rewound, redrawn.

    Parameters
    ----------
    info : mapping with "step", "wide", "rewound" and "redrawn"
        Recorded steps, the wide network's test errors, and one list of test errors a trial, as the recipe
        pareto/lottery-tickets returns them.

    Returns
    -------
    matplotlib.figure.Figure
    """
    missing = [key for key in ("step", "wide", "rewound", "redrawn") if not info.get(key)]
    if missing:
        rule = "must hold step, wide, rewound and redrawn"
        raise invalid("info", rule, f"a mapping without {', '.join(missing)}", "pass what the recipe returned")
    figure = require("matplotlib.figure", "plot", "plot_lottery").Figure(figsize=(10, 3.4), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    groups = {"wide network": [info["wide"]], "rewound neurons": info["rewound"], "redrawn neurons": info["redrawn"]}
    for axes, (title, curves) in zip(panels, groups.items(), strict=True):
        for curve in curves:
            axes.plot(info["step"], curve, color="#c2410c", alpha=0.6, linewidth=1)
        learned = sum(curve[-1] <= 0.1 for curve in curves)
        axes.set_title(f"{title}: {learned} of {len(curves)} learn")
        axes.set_xscale("symlog", linthresh=100)
        axes.set_xlabel("steps")
    panels[0].set_ylabel("test error")
    figure.suptitle("Lottery tickets: the neurons that end up large, alone", fontsize=11)
    return figure
