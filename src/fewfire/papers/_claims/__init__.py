"""What the recipes of all papers share: claims with effects, power and verdicts, and the forms of their data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from matplotlib import figure

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Row]
"""What was measured, as JSON has it."""

Info: TypeAlias = Mapping[str, Any]
Figure: TypeAlias = "figure.Figure"
"""Of plots: the result of a recipe, and what is drawn of it."""
