"""Variants of the inputs, an encoding and a relevance gain each, and rows with targets as every variant shows them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from fewfire.tabular._encodings import AUTO
from fewfire.tabular._relevance import GAINS, explained_shares
from fewfire.tabular._training import TrainingRows
from fewfire.tabular._trees import TreeRows

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.tabular._preprocessing import EncodedTable


@dataclass(frozen=True)
class Variant:
    """A way to present the inputs: an encoding and a relevance gain by name."""

    encoding: str
    gain: str

    def __str__(self) -> str:
        return f"{self.encoding}, {self.gain} gains"


def choose_variants(scaling: str, gains: str) -> list[Variant]:
    """All variants that two settings, a name or "auto" each, leave open."""
    encodings = AUTO if scaling == "auto" else (scaling,)
    return [Variant(*names) for names in product(encodings, GAINS if gains == "auto" else (gains,))]


@dataclass(frozen=True)
class Examples:
    """Encoded rows with targets: target (rows, outputs), weight and strata (rows,); `chosen` of the encoded rows."""

    inputs: EncodedTable
    target: AnyArray
    weight: AnyArray
    strata: AnyArray
    chosen: IdArray | None = None

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, rows: IdArray) -> Examples:
        chosen = rows if self.chosen is None else self.chosen[rows]
        return Examples(self.inputs, self.target[rows], self.weight[rows], self.strata[rows], chosen)

    def sample(self, rows: IdArray) -> Examples:
        """As `examples[rows]`, but only these rows are encoded, where none has been yet."""
        assert self.chosen is None
        return Examples(self.inputs.part(rows), self.target[rows], self.weight[rows], self.strata[rows])

    def encoded(self, encoding: str) -> AnyArray:
        """Inputs (rows, inputs), float32, without gains."""
        return self.inputs[encoding] if self.chosen is None else self.inputs[encoding][self.chosen]

    def rows(self, variant: Variant) -> TrainingRows:
        """What networks of a variant train on, gains not yet included."""
        return TrainingRows(self.encoded(variant.encoding), self.target, self.weight)

    def shares(self, threads: int = 1) -> Float64Array:
        """What each column and flag explains of the target; by ranks, which outliers do not squeeze together."""
        return explained_shares(self.encoded("rank"), self.target, self.weight, threads)

    def for_trees(self) -> TreeRows:
        """What trees are fitted to: the columns that are used, in their own units."""
        raw = self.inputs.raw() if self.chosen is None else self.inputs.raw()[self.chosen]
        return TreeRows(raw, self.target, self.weight)
