"""Encodings of numerical columns, their registry, and inputs of networks: columns encoded, gaps filled and flagged.

standard            z = (x − mean)/deviation; with smooth clipping z/√(1 + (z/c)²), which never exceeds c: a network
                    goes on in straight lines beyond the rows it has seen, and a value a hundred deviations out would
                    make it a hundred times too sure
rank                the normal quantile of the value's rank, interpolated between at most 256 knots
piecewise_linear    how far x has come through each of up to 16 equally full bins of the column: weights on these are
                    slopes, so a network can bend or jump anywhere at once (Gorishniy, Rubachev and Babenko, On
                    Embeddings for Numerical Features in Tabular Deep Learning, 2022)
periodic            learned cosines, part of the network (_dense/network.py)

The last two are added to the column, which is then standardised with smooth clipping at 4. As scikit-learn's scalers
do, encodings leave missing values out in `fit` and keep them in `transform`. To add one, write the class, here or in a
file of its own, and enter it in `ENCODINGS`.

Inputs: a missing value becomes the column's median, and a column that missed any in training gets a flag, a second
input. Inputs are in this order: the columns, the flags, and what an encoding adds. Each encoding of a table is computed
once, however many networks use it.

Relevance gains: the more of the target an input alone explains, the larger it is shown. Networks start without
knowing which columns matter, and on a hundred rows they fit the noise of those that do not. The share of the target's
variance an input explains by itself distinguishes them: five equally full bins, their means against the overall one,
less what noise would explain. Three gains are made of it: "none" (all 1), "mild" (0.1 + 0.9·√share) and "strong"
(share), the largest share being 1. A column that matters only together with others is kept by the first two.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._dense.network import Embedding, PeriodicEmbedding
from fewfire._errors import invalid
from fewfire._threads import Helpers
from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray
from fewfire._validate import check_integer, check_number, check_sample_weight

FARTHEST = 1e30  # deviations; float32 holds it
SWING = 0.25  # an input of the piecewise-linear encoding goes from −SWING to SWING
CLIP = 4.0  # where columns are smoothly clipped that an encoding is added to
PLAIN = "plain"  # names them, with the flags, among the encodings of a table
BLURRED = 2.0**-12  # of a column's size, the spread below which float32 has too few steps for it, some two thousand
GAINS = ("none", "mild", "strong")
BINS = 5
FLOOR = 0.1
AT_LEAST = 4  # columns that are worth a thread


class ColumnRanks(NamedTuple):
    """Distinct values (ascending), their mass and middle ranks (distinct,), and which of them each row has (rows,)."""

    distinct: Float64Array
    mass: Float64Array
    middle: Float64Array
    of_row: NDArray[np.int64]


def column_ranks(values: NDArray[np.floating[Any]], weight: Float64Array) -> ColumnRanks:
    """Of values (rows,) with weights (rows,): a middle rank, in (0, 1), is the mass below a value and half its own."""
    distinct, of_row = np.unique(values, return_inverse=True)
    mass = np.bincount(of_row, weights=weight).astype(np.float64)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    # A weight that vanishes next to the others would have rank 0 or 1 exactly, whose normal quantile is infinite.
    return ColumnRanks(distinct.astype(np.float64), mass, np.clip(middle, 1e-9, 1 - 1e-9), of_row)


class Encoding(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A map of each column by itself, learned from the weighted ranks of its values."""

    added: ClassVar[bool] = False
    """Whether the outputs are added to the columns; otherwise there is one per column, in its place."""

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Learn from X (rows, columns) with NaN where values are missing; a row of weight 2 counts as two."""
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        weight = check_sample_weight(sample_weight, len(table))
        columns = [(~np.isnan(values)) & (weight > 0) for values in table.T]
        for index, known in enumerate(columns):
            if not known.any():
                got = f"NaN alone in column {index}"
                raise invalid("X", "must have a value in every column", got, "drop the column")
        return self.fit_ranks([column_ranks(table[k, j], weight[k]) for j, k in enumerate(columns)])

    def transform(self, X: object) -> Float64Array:
        """The encoded columns (rows, outputs) of X (rows, columns)."""
        check_is_fitted(self)
        return self.encode(validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan"))

    @abstractmethod
    def fit_ranks(self, columns: Sequence[ColumnRanks]) -> Self:
        """Learn from the ranks of every column; none is empty."""

    @abstractmethod
    def encode(self, table: Float64Array) -> Float64Array:
        """What `transform` gives for a checked table."""

    @abstractmethod
    def sources(self) -> IdArray:
        """Of each output the column it comes from."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class StandardScaling(OneToOneFeatureMixin, Encoding):  # type: ignore[misc]
    """Columns by mean and deviation, with smooth clipping if asked for.

    Parameters
    ----------
    clip : float or None
        Outputs approach ±clip and never exceed it; None does not clip.

    Attributes
    ----------
    mean_, scale_ : arrays (columns,)

    Examples
    --------
    >>> from fewfire.tabular import ENCODINGS
    >>> ENCODINGS["standard"](clip=4.0).fit([[1.0], [3.0]]).transform([[1.0], [3.0], [1e9]]).round(2).tolist()
    [[-0.97], [0.97], [4.0]]
    """

    def __init__(self, clip: float | None = None) -> None:
        self.clip = clip

    def fit_ranks(self, columns: Sequence[ColumnRanks]) -> Self:
        """Means and deviations; a column of one value becomes 0."""
        if self.clip is not None:
            check_number("clip", self.clip, 0.0, open_low=True)
        found = [_mean_and_scale(column) for column in columns]
        self.mean_, self.scale_ = np.array(found).reshape(-1, 2).T.copy()
        return self

    def encode(self, table: Float64Array) -> Float64Array:
        """Scaled columns (rows, columns)."""
        with np.errstate(over="ignore"):
            z = np.clip((table - self.mean_) / self.scale_, -FARTHEST, FARTHEST)
        return np.asarray(z if self.clip is None else z / np.hypot(1.0, z / self.clip))

    def sources(self) -> IdArray:
        """Every column once."""
        return np.arange(len(self.mean_))


def _mean_and_scale(column: ColumnRanks) -> tuple[float, float]:
    size = float(np.abs(column.distinct).max()) or 1.0  # squares of huge and of tiny numbers leave the range of floats
    mean = float(np.average(column.distinct / size, weights=column.mass))
    deviation = float(np.sqrt(np.average((column.distinct / size - mean) ** 2, weights=column.mass)))
    scale = size * deviation if deviation > 0 else np.inf  # one value is of no use
    return size * mean, max(scale, float(np.finfo(float).tiny))


class RankEncoding(OneToOneFeatureMixin, Encoding):  # type: ignore[misc]
    """Normal quantiles of ranks: whatever the distribution of a column, its encoding is nearly normal.

    Parameters
    ----------
    knots : int
        Values are interpolated between at most so many.

    Attributes
    ----------
    knots_ : list of (values, quantiles), one per column

    Examples
    --------
    >>> from fewfire.tabular import ENCODINGS
    >>> ENCODINGS["rank"]().fit_transform([[5.0], [1.0], [100.0]]).round(2).tolist()
    [[0.0], [-0.97], [0.97]]
    """

    def __init__(self, knots: int = 256) -> None:
        self.knots = knots

    def fit_ranks(self, columns: Sequence[ColumnRanks]) -> Self:
        """Values and the normal quantiles of their middle ranks."""
        count = check_integer("knots", self.knots, 2)
        self.knots_ = []
        for distinct, _, middle, _ in columns:
            if len(distinct) > count:
                levels = np.linspace(middle[0], middle[-1], count)
                distinct, middle = np.interp(levels, middle, distinct), levels
            self.knots_.append((distinct, ndtri(middle)))
        return self

    def encode(self, table: Float64Array) -> Float64Array:
        """Normal quantiles (rows, columns)."""
        encoded = np.empty_like(table)
        for index, knots in enumerate(self.knots_):
            encoded[:, index] = np.interp(table[:, index], *knots)
        return encoded

    def sources(self) -> IdArray:
        """Every column once."""
        return np.arange(len(self.knots_))


class PiecewiseLinearEncoding(ClassNamePrefixFeaturesOutMixin, Encoding):  # type: ignore[misc]
    """For each of several equally full bins of a column how far the value has come through it, from −¼ to ¼.

    Bins whose edges coincide are one: a value taken nine times of ten is the edge of one bin, not of many.

    Parameters
    ----------
    bins : int
        Per column, at most.
    max_outputs : int
        Of all columns together; a wide table gets fewer bins per column, but two at least.

    Attributes
    ----------
    edges_ : list of arrays (bins + 1,), one per column

    Examples
    --------
    >>> from fewfire.tabular import ENCODINGS
    >>> encoding = ENCODINGS["piecewise_linear"](bins=2).fit([[0.0], [1.0], [2.0], [3.0], [4.0]])
    >>> encoding.transform([[-9.0], [1.0], [2.0], [9.0]]).tolist()
    [[-0.25, -0.25], [0.0, -0.25], [0.25, -0.25], [0.25, 0.25]]
    """

    added = True

    def __init__(self, bins: int = 16, max_outputs: int = 256) -> None:
        self.bins = bins
        self.max_outputs = max_outputs

    def fit_ranks(self, columns: Sequence[ColumnRanks]) -> Self:
        """Edges, which are values of the column, each once."""
        most = check_integer("max_outputs", self.max_outputs, 1) // max(len(columns), 1)
        bins = min(check_integer("bins", self.bins, 1), max(2, most))
        self.edges_ = []
        for distinct, mass, *_ in columns:
            share = np.cumsum(mass) / mass.sum()
            at = np.searchsorted(share, np.linspace(0, 1, bins + 1)[1:-1])
            self.edges_.append(np.unique(distinct[[0, *at.tolist(), -1]]))
        return self

    def encode(self, table: Float64Array) -> Float64Array:
        """Progress through the bins (rows, outputs), column by column."""
        parts = [np.empty((len(table), 0))]
        for index, edges in enumerate(self.edges_):
            low, high = edges[:-1] / 2, edges[1:] / 2  # halves, whose differences do not overflow
            with np.errstate(over="ignore"):  # of values far outside narrow bins, which are clipped
                progress = np.clip((table[:, index, None] / 2 - low) / (high - low), 0.0, 1.0)
            parts.append(SWING * (2 * progress - 1))
        return np.hstack(parts)

    def sources(self) -> IdArray:
        """Every column as often as it has bins."""
        return np.repeat(np.arange(len(self.edges_)), [len(edges) - 1 for edges in self.edges_])

    @property
    def _n_features_out(self) -> int:  # scikit-learn names the outputs by it
        return len(self.sources())


ENCODINGS: dict[str, type[Encoding] | type[Embedding]] = {
    "standard": StandardScaling,
    "rank": RankEncoding,
    "piecewise_linear": PiecewiseLinearEncoding,
    "periodic": PeriodicEmbedding,
}
"""Encodings by name, made without arguments."""

AUTO = ("rank", "piecewise_linear", "periodic")
"""What "auto" trains networks on."""


@dataclass(frozen=True)
class Columns:
    """What is learned of the columns of a table: which are `used`, and of these, in arrays (used,), the rest.

    `flagged` columns missed values. Trees see the columns without `offsets`: 0, but for columns that float32 would
    blur. `encodings` are the fitted encodings and embeddings by name.
    """

    used: IdArray
    medians: Float64Array
    flagged: NDArray[np.bool_]
    offsets: Float64Array
    plain: StandardScaling
    encodings: dict[str, Encoding | Embedding]

    def sources(self, name: str) -> NDArray[np.int64]:
        """Of each input in an encoding the column or flag it comes from; a table of no columns has one input, 0."""
        base = np.arange(max(1, len(self.used) + int(self.flagged.sum())))
        encoding = self.encodings[name]
        more = encoding.sources() if isinstance(encoding, Encoding) and encoding.added else base[:0]
        return np.concatenate([base, more])

    def embedding(self, name: str) -> Embedding | None:
        """The layer that the network trains in addition to its inputs."""
        encoding = self.encodings[name]
        return encoding if isinstance(encoding, Embedding) else None

    def encode(self, table: Float64Array) -> EncodedTable:
        """The inputs of a table (rows, columns) in every encoding."""
        return EncodedTable(self, table)


class EncodedTable:
    """Inputs (rows, inputs), float32, by name of their encoding, computed when first asked for and kept."""

    def __init__(self, columns: Columns, table: Float64Array) -> None:
        self._columns = columns
        self._encoded: dict[str, AnyArray] = {}
        values = table[:, columns.used]
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
        if encoding.added:
            return np.hstack([self[PLAIN], encoded.astype(np.float32)])
        return self._with_flags(encoded)

    def _with_flags(self, encoded: Float64Array) -> AnyArray:
        inputs = np.hstack([encoded, self._missing[:, self._columns.flagged]]).astype(np.float32)
        return inputs if inputs.shape[1] else np.zeros((len(self), 1), np.float32)


def varies(column: Float64Array) -> bool:
    """Whether a column (rows,) is of use: one value and gaps are, which get a flag; gaps alone are not."""
    known = column[~np.isnan(column)]
    return len(known) > 0 and (len(known) < len(column) or bool(np.ptp(known) > 0))


def learn_columns(table: Float64Array, weight: Float64Array, names: Collection[str], threads: int = 1) -> Columns:
    """Fit the named encodings to a table (rows, columns) with NaN where values are missing, and weights (rows,)."""
    known = ~np.isnan(table)
    values = [column[seen] for column, seen in zip(table.T, known.T, strict=True)]
    gaps = np.array([len(column) < len(table) for column in values], dtype=bool)
    used = [index for index, column in enumerate(table.T) if varies(column)]
    ranks = mapped(lambda index: column_ranks(values[index], weight[known[:, index]]), used, threads)
    medians = [np.interp(0.5, column.middle, column.distinct) for column in ranks]
    encodings: dict[str, Encoding | Embedding] = {}
    for name in names:
        encoding = ENCODINGS[name]()
        encodings[name] = encoding.fit_ranks(ranks) if isinstance(encoding, Encoding) else encoding
    plain = StandardScaling(CLIP).fit_ranks(ranks)
    offsets = [_offset(column.distinct) for column in ranks]
    return Columns(np.array(used, dtype=np.int64), np.array(medians), gaps[used], np.array(offsets), plain, encodings)


def _offset(distinct: Float64Array) -> float:
    """The middle of ascending values whose quartiles float32 hardly separates, or 0: columns it suits stay."""
    low, middle, high = distinct[[len(distinct) * quarter // 4 for quarter in (1, 2, 3)]]
    with np.errstate(over="ignore"):
        return float(middle) if 0 < high - low < BLURRED * abs(middle) else 0.0


def relevance_gains(shares: Float64Array, kind: str) -> FloatArray:
    """Gains (inputs,) in [0, 1], float32, of shares (inputs,); all 1 when no input alone explains anything."""
    largest = shares.max(initial=0.0)
    if kind == "none" or largest <= 0:
        return np.ones(len(shares), np.float32)
    relative = shares / largest
    gains: FloatArray = FLOOR + (1 - FLOOR) * np.sqrt(relative) if kind == "mild" else relative
    return gains.astype(np.float32)


def explained_shares(X: FloatArray, target: FloatArray, weight: FloatArray, threads: int = 1) -> Float64Array:
    """Share of the variance of target (rows, outputs) that each column of X (rows, inputs) explains beyond chance."""
    rows, mass = len(X), weight.astype(np.float64)
    centred = target - np.average(target, axis=0, weights=mass)
    variance = float(np.average(centred**2, axis=0, weights=mass).sum())
    if variance <= 0 or rows < 3:
        return np.zeros(X.shape[1])
    bins = max(2, min(BINS, rows // 5))
    shares = mapped(lambda column: _share(column, centred, mass, bins) / variance, list(X.T), threads)
    return np.array(shares).clip(0.0)


def _share(column: FloatArray, centred: FloatArray, mass: Float64Array, bins: int) -> float:
    """Variance between the bins of a column (rows,), less what bins drawn at random would show."""
    ranks = column_ranks(column, mass)
    # The bin of a row is that of its value's middle rank, so that two values of a column are never all in one.
    index = np.minimum(ranks.middle * bins, bins - 1).astype(np.int64)[ranks.of_row]
    filled = np.bincount(index, weights=mass, minlength=bins)
    present = filled > 0
    sums = np.column_stack([np.bincount(index, weights=mass * values, minlength=bins) for values in centred.T])
    between = (sums[present] ** 2 / filled[present, None]).sum() / mass.sum()
    overall = (mass[:, None] * centred**2).sum() / mass.sum()
    return float(between - overall * (np.count_nonzero(present) - 1) / (len(column) - 1))


def mapped(function: Callable[[Any], Any], items: Sequence[Any], threads: int) -> list[Any]:
    """The results of a function for items, on so many threads; it pays if it gives up the interpreter's lock."""
    share = max(AT_LEAST, -(-len(items) // threads))
    if len(items) <= share:
        return [function(item) for item in items]
    parts = [items[start : start + share] for start in range(0, len(items), share)]
    with Helpers(len(parts)) as helpers:
        return [found for part in helpers.map(lambda part: [function(item) for item in part], parts) for found in part]
