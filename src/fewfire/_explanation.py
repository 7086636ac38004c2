"""What `explain` of an estimator gives: text for `print`, a card in a notebook, and a table of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from fewfire._optional import require
from fewfire._types import AnyArray


class Explanation:
    """A fitted model explained.

    Parameters
    ----------
    title : str
        The class of the model.
    lines : sequence of str
        The text that `print` shows.
    table : mapping of str to sequence
        Columns of equal length, one entry per part of the model that is shown: a term, a neuron, an epoch.
    """

    def __init__(self, title: str, lines: Sequence[str], table: Mapping[str, Sequence[Any] | AnyArray]) -> None:
        self._title, self._lines, self._table = title, lines, table

    @property
    def title(self) -> str:
        """The class of the model."""
        return self._title

    @property
    def lines(self) -> Sequence[str]:
        """The text, line by line."""
        return self._lines

    @property
    def table(self) -> Mapping[str, Sequence[Any] | AnyArray]:
        """Columns of equal length, one entry per part of the model."""
        return self._table

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return require("pandas", "sweep", "to_frame").DataFrame(dict(self.table))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<div><strong>{escape(self.title)}</strong><pre>{escape(str(self))}</pre></div>"
