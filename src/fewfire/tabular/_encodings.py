"""Encodings of numerical columns, each a transformer by itself, and the registry that the ensemble reads.

standard            z = (x − mean)/deviation; with smooth clipping z/√(1 + (z/c)²), which never exceeds c: a network
                    goes on in straight lines beyond the rows it has seen, and a value a hundred deviations out would
                    make it a hundred times too sure
rank                the normal quantile of the value's rank, interpolated between at most 256 knots
piecewise_linear    how far x has come through each of up to 16 equally full bins of the column: weights on these are
                    slopes, so a network can bend or jump anywhere at once (Gorishniy, Rubachev and Babenko, On
                    Embeddings for Numerical Features in Tabular Deep Learning, 2022)
periodic            learned cosines, part of the network (_embeddings.py)

The last two stand beside the column, which is then standardised with smooth clipping at 4. As scikit-learn's scalers
do, encodings leave missing values out in `fit` and keep them in `transform`. To add one, write the class, here or in a
file of its own, and enter it in `ENCODINGS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number, check_sample_weight
from fewfire.tabular._embeddings import Embedding, PeriodicEmbedding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fewfire._types import Float64Array, IdArray

FARTHEST = 1e30  # deviations; float32 holds it
SWING = 0.25  # an input of the piecewise-linear encoding goes from −SWING to SWING


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
    # A weight that vanishes beside the others would have rank 0 or 1 exactly, whose normal quantile is infinite.
    return ColumnRanks(distinct.astype(np.float64), mass, np.clip(middle, 1e-9, 1 - 1e-9), of_row)


class Encoding(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A map of each column by itself, learned from the weighted ranks of its values."""

    beside: ClassVar[bool] = False
    """Whether the outputs stand beside the columns; otherwise there is one per column, in its place."""

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Learn from X (rows, columns) with NaN where values are missing; a row of weight 2 counts as two."""
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        weight = check_sample_weight(sample_weight, len(table))
        columns = [(~np.isnan(values)) & (weight > 0) for values in table.T]
        for place, known in enumerate(columns):
            if not known.any():
                got = f"NaN alone in column {place}"
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
    >>> from fewfire.tabular import StandardScaling
    >>> StandardScaling(clip=4.0).fit([[1.0], [3.0]]).transform([[1.0], [3.0], [1e9]]).round(2).tolist()
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
    scale = size * deviation if deviation > 0 else np.inf  # one value says nothing
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
    >>> from fewfire.tabular import RankEncoding
    >>> RankEncoding().fit_transform([[5.0], [1.0], [100.0]]).round(2).tolist()
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
        for place, knots in enumerate(self.knots_):
            encoded[:, place] = np.interp(table[:, place], *knots)
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
    >>> from fewfire.tabular import PiecewiseLinearEncoding
    >>> encoding = PiecewiseLinearEncoding(bins=2).fit([[0.0], [1.0], [2.0], [3.0], [4.0]])
    >>> encoding.transform([[-9.0], [1.0], [2.0], [9.0]]).tolist()
    [[-0.25, -0.25], [0.0, -0.25], [0.25, -0.25], [0.25, 0.25]]
    """

    beside = True

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
        for place, edges in enumerate(self.edges_):
            low, high = edges[:-1] / 2, edges[1:] / 2  # halves, whose differences do not overflow
            with np.errstate(over="ignore"):  # of values far outside narrow bins, which are clipped
                progress = np.clip((table[:, place, None] / 2 - low) / (high - low), 0.0, 1.0)
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
