"""Views: ways to present the inputs to a network, each a scaling and a gain. Which one suits, the held-out rows say.

No presentation suits all tables: ranks ruin columns that are one value nine times of ten, raw units are ruled by
outliers; bins help where the target jumps along a column and waves where it swings, and both cost rows to learn; gains
save a table of mostly idle columns but hide interactions. So networks are trained on every view and mixed by what the
rows held out from them say (_mixing.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from fewfire.learners.sparse_init._columns import Columns, learn_columns
from fewfire.learners.sparse_init._relevance import GAINS, explained_shares, input_gains
from fewfire.learners.sparse_init._waves import COUNT

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array

PRESENTATIONS = ("quantile", "bins", "waves")
"""What "auto" tries: ranks; bins; and waves (_waves.py), which are part of the network and see bent columns."""


@dataclass(frozen=True)
class View:
    """A scaling and a gain by name."""

    scaling: str
    gain: str

    def __str__(self) -> str:
        return f"{self.scaling}, {self.gain} gains"

    @property
    def waves(self) -> int:
        """Waves an input that the network adds."""
        return COUNT if self.scaling == "waves" else 0


@dataclass(frozen=True)
class Inputs:
    """What every view of one table needs: its columns and what each input explains."""

    columns: Columns
    shares: Float64Array

    def count(self, view: View) -> int:
        """Inputs of a network that sees the view."""
        return len(self.columns.sources(_scaling(view)))

    def scale(self, table: Float64Array, view: View) -> AnyArray:
        """Inputs (rows, inputs), float32, without gains."""
        return self.columns.transform(table, _scaling(view))

    def gains(self, view: View, shares: Float64Array | None = None) -> AnyArray:
        """Gains (inputs,), float32, of shares, those of all rows by default."""
        return input_gains(self.shares if shares is None else shares, view.gain)[self.columns.sources(_scaling(view))]

    def transform(self, table: Float64Array, view: View) -> AnyArray:
        """Inputs (rows, inputs), float32, as the view shows them."""
        return np.asarray(self.scale(table, view) * self.gains(view))

    def explained(self, table: Float64Array, target: AnyArray, weight: Float64Array) -> Float64Array:
        """What each column and flag explains of the target; by ranks, which outliers do not squeeze together."""
        return explained_shares(self.columns.transform(table, "quantile"), target, weight)


def _scaling(view: View) -> str:
    return "bent" if view.waves else view.scaling


def learn_inputs(table: Float64Array, target: AnyArray, weight: Float64Array) -> Inputs:
    """Fit `Inputs` to table (rows, columns), target (rows, outputs) and weights (rows,)."""
    bare = Inputs(learn_columns(table, weight), np.zeros(0))
    return replace(bare, shares=bare.explained(table, target, weight))


def choose_views(scaling: str, gains: str) -> list[View]:
    """All views that two settings, a name or "auto" each, leave open."""
    scalings = PRESENTATIONS if scaling == "auto" else (scaling,)
    return [View(*names) for names in product(scalings, GAINS if gains == "auto" else (gains,))]
