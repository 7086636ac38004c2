"""What the recipes of sublinear share: the power of the width in some work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire.papers._claims import Rows


def power_of_width(widths: Sequence[int], work: Sequence[float]) -> float:
    """e of work = c·m^e, by least squares of logarithms."""
    return float(np.polyfit(np.log(widths), np.log(work), 1)[0])


def powers_by_seed(rows: Rows, what: str) -> list[float]:
    """The power of row["width"] in row[what], one per row["seed"]: independent, so Student's interval holds."""
    found = []
    for seed in dict.fromkeys(row["seed"] for row in rows):
        mine = [row for row in rows if row["seed"] == seed]
        found.append(power_of_width([row["width"] for row in mine], [row[what] for row in mine]))
    return found
