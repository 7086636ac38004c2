"""What a fitted model is made of, as text: its members with their weights, and how the time was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fewfire.tabular._ensemble import Ensemble
    from fewfire.tabular._group import NetworkGroup


COUNTED = {"cpu": "all threads added up", "torch": "networks by the clock, threads of trees added up"}
"""How time was taken, by who trained the networks."""


def describe(heading: str, ensemble: Ensemble, engine: str) -> str:
    """A table of the members, weightiest first, and a line about temperature and time."""
    lines = [heading, f"{'member':32s} {'weight':>7s}  {'held-out loss':>13s}  trained"]
    weights = ensemble.mixing_weights()
    details = {str(variant): _network_details(group) for variant, group in ensemble.groups.items()}
    details |= {name: ("", trees.described()) for name, trees in ensemble.trees.items()}
    for name in sorted(weights, key=lambda name: -weights[name]):
        loss, trained = details[name]
        lines.append(f"{name:32s} {weights[name]:7.3f}  {loss:>13s}  {trained}")
    if ensemble.loss != "squared":
        lines.append(f"temperature of the networks: {ensemble.temperature:.2f}")
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in ensemble.seconds.items())
    lines.append(f"time, {COUNTED[engine]}: {spent or 'not known'}")
    return "\n".join(lines)


def _network_details(group: NetworkGroup) -> tuple[str, str]:
    """The lowest held-out loss and what was trained."""
    curves = group.curves
    lowest = f"{min(curves.validation):.4f}" if curves.validation else ""
    epochs = len(curves.training)
    cooled = f", {group.cooled} to cool down" if group.cooled else ""
    return lowest, ("1 epoch" if epochs == 1 else f"{epochs} epochs") + cooled
