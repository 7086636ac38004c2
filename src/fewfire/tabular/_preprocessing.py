"""From a table to inputs of a network: missing values filled and flagged, constant columns dropped, columns encoded.

A missing value becomes the column's median, and a column that missed any in training gets a second input that says so.
All is learned from weighted rows and part of the fitted model. Inputs are in this order: the columns, the flags, and
what an encoding adds beside them. Each encoding of a table is computed once, however many networks see it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire.tabular._embeddings import Embedding
from fewfire.tabular._encodings import ENCODINGS, Encoding, StandardScaling, column_ranks
from fewfire.tabular._queue import mapped

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, Float64Array, IdArray

CLIP = 4.0
"""Where columns are smoothly clipped that an encoding stands beside."""
PLAIN = "plain"
"""Names them, with the flags, among the encodings of a table."""
BLURRED = 2.0**-12
"""Of a column's size, the spread below which float32 has too few steps for it, some two thousand."""


@dataclass(frozen=True)
class Columns:
    """What is learned of the columns of a table.

    Parameters
    ----------
    places : array (used,)
        The columns that are used.
    medians : array (used,)
    flagged : array (used,) of bool
        Which columns missed values.
    offsets : array (used,)
        What trees see the columns without: 0, but for columns that float32 would blur.
    plain : StandardScaling
    encodings : dict
        Fitted encodings and embeddings by name.
    """

    places: IdArray
    medians: Float64Array
    flagged: NDArray[np.bool_]
    offsets: Float64Array
    plain: StandardScaling
    encodings: dict[str, Encoding | Embedding]

    def sources(self, name: str) -> NDArray[np.int64]:
        """Of each input in an encoding the column or flag it comes from; a table of no columns has one input, 0."""
        base = np.arange(max(1, len(self.places) + int(self.flagged.sum())))
        encoding = self.encodings[name]
        added = encoding.sources() if isinstance(encoding, Encoding) and encoding.beside else base[:0]
        return np.concatenate([base, added])

    def embedding(self, name: str) -> Embedding | None:
        """What the network trains beside its inputs."""
        encoding = self.encodings[name]
        return encoding if isinstance(encoding, Embedding) else None

    def encode(self, table: Float64Array) -> EncodedTable:
        """The inputs of a table (rows, columns) in every encoding."""
        return EncodedTable(self, table)


class EncodedTable:
    """Inputs (rows, inputs), float32, by name of their encoding, computed when first asked for and kept.

    Parameters
    ----------
    columns : Columns
    table : array (rows, columns)
    """

    def __init__(self, columns: Columns, table: Float64Array) -> None:
        self._columns = columns
        self._encoded: dict[str, AnyArray] = {}
        values = table[:, columns.places]
        self._missing = np.isnan(values)
        self._filled = np.where(self._missing, columns.medians, values)

    def __len__(self) -> int:
        return len(self._filled)

    def __getitem__(self, name: str) -> AnyArray:
        if name not in self._encoded:
            self._encoded[name] = np.ascontiguousarray(self._encode(name))  # rows are read one by one
        return self._encoded[name]

    def part(self, rows: IdArray) -> EncodedTable:
        """Some of the rows, which are encoded by themselves where all have not been yet."""
        part = copy.copy(self)
        part._missing, part._filled = self._missing[rows], self._filled[rows]
        part._encoded = {name: encoded[rows] for name, encoded in self._encoded.items()}
        return part

    def raw(self) -> Float64Array:
        """The columns that are used (rows, used), less their offsets, NaN where values are missing: what trees see."""
        values, offsets = np.where(self._missing, np.nan, self._filled), self._columns.offsets
        with np.errstate(over="ignore"):  # beyond all numbers is far enough for trees
            return values - offsets if offsets.any() else values

    def _encode(self, name: str) -> AnyArray:
        columns = self._columns
        if name == PLAIN:
            return self._with_flags(columns.plain.encode(self._filled))
        encoding = columns.encodings[name]
        if isinstance(encoding, Embedding):
            return self[PLAIN]
        encoded = encoding.encode(self._filled)
        if encoding.beside:
            return np.hstack([self[PLAIN], encoded.astype(np.float32)])
        return self._with_flags(encoded)

    def _with_flags(self, encoded: Float64Array) -> AnyArray:
        inputs = np.hstack([encoded, self._missing[:, self._columns.flagged]]).astype(np.float32)
        return inputs if inputs.shape[1] else np.zeros((len(self), 1), np.float32)


def varies(column: Float64Array) -> bool:
    """Whether a column (rows,) says anything: one value and gaps do, which get a flag; gaps alone do not."""
    known = column[~np.isnan(column)]
    return len(known) > 0 and (len(known) < len(column) or bool(np.ptp(known) > 0))


def learn_columns(table: Float64Array, weight: Float64Array, names: Collection[str], threads: int = 1) -> Columns:
    """Fit the named encodings to a table (rows, columns) with NaN where values are missing, and weights (rows,)."""
    known = ~np.isnan(table)
    values = [column[seen] for column, seen in zip(table.T, known.T, strict=True)]
    gaps = np.array([len(column) < len(table) for column in values], dtype=bool)
    used = [place for place, column in enumerate(table.T) if varies(column)]
    ranks = mapped(lambda place: column_ranks(values[place], weight[known[:, place]]), used, threads)
    medians = [np.interp(0.5, column.middle, column.distinct) for column in ranks]
    encodings: dict[str, Encoding | Embedding] = {}
    for name in names:
        encoding = ENCODINGS[name]()
        encodings[name] = encoding.fit_ranks(ranks) if isinstance(encoding, Encoding) else encoding
    plain = StandardScaling(CLIP).fit_ranks(ranks)
    offsets = [_offset(column.distinct) for column in ranks]
    return Columns(np.array(used, dtype=np.int64), np.array(medians), gaps[used], np.array(offsets), plain, encodings)


def _offset(distinct: Float64Array) -> float:
    """The middle of ascending values whose quartiles float32 hardly tells apart, or 0: columns it suits stay."""
    low, middle, high = distinct[[len(distinct) * quarter // 4 for quarter in (1, 2, 3)]]
    with np.errstate(over="ignore"):
        return float(middle) if 0 < high - low < BLURRED * abs(middle) else 0.0
