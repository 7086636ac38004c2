"""What a fitted model makes of each column: permutation importances and curves of main effects.

The importance of a column is what predictions lose when its values are shuffled over the rows (Breiman 2001): log loss
of classes; squared error of numbers, in parts of their variance, which is a drop in R² and has no unit (of targets
that are all the same, squared error itself). A row loses 1e150 at most. Shuffling and scoring are scikit-learn's. Rows
are scored in twenty parts, whose spread gives an interval that includes both the shuffles and the choice of rows.
Without targets the model's own predictions stand for them: what is lost is then how much the model leans on a column,
right or wrong.

A curve is the mean prediction over rows with one column set to each of several values (partial dependence, Friedman
2001). The band around it is where four fifths of the rows' own curves run, each moved to the mean curve's level: it
has no width where the column acts alone, and is wide where what it does depends on others. scikit-learn's function of
that name sets one value at a time, which costs four times as much here, and takes values of one's own only from 1.7 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import t as student
from sklearn.inspection import permutation_importance

from fewfire._errors import invalid
from fewfire._explanation import Explanation
from fewfire._html import bars, card
from fewfire._optional import require
from fewfire._validate import check_integer, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fewfire._types import AnyArray, Float64Array

    Predict = Callable[[Float64Array], Float64Array]
    """From a table (rows, columns) of numbers and codes to probabilities (rows, classes) or numbers (rows, outputs)."""

PARTS = 20  # of the rows, at most, each scored by itself
FEWEST = 4  # rows in a part
CURVE_ROWS = 200  # means over more rows look the same
ENDS = (0.025, 0.975)  # of a column's values, between which its curve runs
BAND = (0.1, 0.9)
TINY = 1e-15  # the least probability that counts, as in scikit-learn's log loss
WORST = 1e150  # what a row can lose at most: squares of losses, and so intervals, stay finite
TICKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class EffectCurve:
    """The mean prediction as one column takes each of several values.

    Parameters
    ----------
    name : str
        Of the column.
    kind : {"number", "category"}
    values : tuple
        Numbers in ascending order, or categories; None, the last, is a missing value.
    mean, low, high : arrays (values, outputs)
        Mean prediction, and where four fifths of the rows lie around it.
    """

    name: str
    kind: Literal["number", "category"]
    values: tuple[Any, ...]
    mean: Float64Array
    low: Float64Array
    high: Float64Array

    def to_frame(self, outputs: Sequence[str] | None = None) -> Any:
        """A pandas DataFrame: value, and mean, low and high of each output; named if there are several."""
        pandas = require("pandas", "sweep", "to_frame")
        count = self.mean.shape[1]
        names = [f" of {name}" for name in outputs or range(count)] if count > 1 else [""]
        table: dict[str, Any] = {"value": list(self.values)}
        for index, name in enumerate(names):
            parts = {"mean": self.mean, "low": self.low, "high": self.high}
            table |= {f"{part}{name}": values[:, index] for part, values in parts.items()}
        return pandas.DataFrame(table)


@dataclass(frozen=True)
class Effects(Explanation):
    """What a fitted model makes of each column, as `TabularClassifier.explain` found it.

    Parameters
    ----------
    model : str
        Its class.
    importance, low, high : arrays (columns,)
        What predictions lose without the column, and a 95% interval.
    measure : str
        In what: "log loss" or "share of the variance", which is the same in every unit of the targets.
    curves : tuple of EffectCurve
        One per column, in the table's order.
    outputs : tuple of str
        What the curves predict: the second class of two, each of more classes, or targets.
    rows : int
        Rows it was found on.

    Examples
    --------
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(150, n_features=6, random_state=0)
    >>> model = ff.TabularRegressor(scaling="rank", members=2, trees=False, random_state=0).fit(X, y)
    >>> effects = model.explain(X, y)
    >>> [effects.names[index] for index in effects.order()]  # the last is of no use
    ['x3', 'x1', 'x0', 'x2', 'x4', 'x5']
    >>> bool(effects["x3"].mean[-1] > effects["x3"].mean[0])  # y rises with 10 · x3
    True
    """

    model: str
    importance: Float64Array
    low: Float64Array
    high: Float64Array
    measure: str
    curves: tuple[EffectCurve, ...]
    outputs: tuple[str, ...]
    rows: int

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(curve.name for curve in self.curves)

    def order(self) -> list[int]:
        """Indices of the columns, the most important first."""
        return [int(index) for index in np.argsort(-self.importance, kind="stable")]

    def __getitem__(self, column: int | str) -> EffectCurve:
        """The curve of a column, by index or name."""
        if isinstance(column, str):
            if column not in self.names:
                rule = f"must be one of {', '.join(self.names)}"
                raise invalid("column", rule, column, did_you_mean(column, self.names))
            return self.curves[self.names.index(column)]
        return self.curves[column]

    @property
    def title(self) -> str:
        """What was measured, on how many rows."""
        return f"{self.model}: {self.measure} lost without a column, on {self.rows} rows"

    @property
    def lines(self) -> list[str]:
        """Title, heading and a line per column, the most important first."""
        width = max(6, *map(len, self.names))
        heading = f"{'column':{width}s} {'importance':>10s}  {'95% interval':>18s}  effect on {self.outputs[-1]}"
        lines = [self.title, heading]
        for index in self.order():
            interval = f"{self.low[index]:8.4f}, {self.high[index]:8.4f}"
            row = f"{self.names[index]:{width}s} {self.importance[index]:10.4f}  {interval}  {self._drawn(index)}"
            lines.append(row)
        return lines

    @property
    def table(self) -> dict[str, Any]:
        """Importances and their intervals, the most important column first; curves have their own table."""
        order, names = self.order(), self.names
        parts = {"importance": self.importance, "low": self.low, "high": self.high}
        return {"column": [names[index] for index in order]} | {name: part[order] for name, part in parts.items()}

    def _repr_html_(self) -> str:
        order = self.order()
        facts = {
            self.names[index]: f"{self.importance[index]:.4f} ({self.low[index]:.4f} to {self.high[index]:.4f})  "
            f"{self._drawn(index)}"
            for index in order
        }
        return card(self.title, facts, bars("importances, largest first", np.maximum(self.importance[order], 0.0)))

    def _drawn(self, index: int) -> str:
        """A curve in one line of text, on the scale of all columns, and its ends."""
        tops = [float(np.ptp(curve.mean[:, -1])) for curve in self.curves]
        values = self.curves[index].mean[:, -1]
        steps = (len(TICKS) - 1) * (values - values.min()) / (max(tops) or 1.0)
        return f"{''.join(TICKS[round(step)] for step in steps)} {_span(float(values.min()), float(values.max()))}"


@dataclass(frozen=True)
class Explained:
    """A fitted model: its columns, the categories of each column of codes by code, and its classes or None."""

    model: Any
    predict: Predict
    names: Sequence[str]
    categories: Mapping[int, Sequence[Any]]
    classes: Sequence[Any] | None

    def losses(self, predicted: Float64Array, target: AnyArray) -> Float64Array:
        """Losses (rows,) of predictions: log loss, or squared errors in parts of the targets' variance."""
        if self.classes is not None:
            return -np.asarray((target * np.log(np.maximum(predicted, TINY))).sum(axis=1))
        varies = (target != target[0]).any(axis=0)  # a mean is rounded, and a variance seldom 0
        # The power of two that the largest of a column is one to two times of: division by it is exact, and squares in
        # other units may leave the range of floats.
        power = np.ldexp(1.0, np.frexp(np.abs(target).max(axis=0))[1] - 1)
        unit = np.where(varies, power, 1.0)
        target = target / unit
        with np.errstate(over="ignore"):
            lost = (predicted / unit - target) ** 2 / np.where(varies, target.var(axis=0), 1.0)
        return np.asarray(np.minimum(lost, WORST).mean(axis=1))


def find_importances(
    about: Explained, table: Float64Array, target: AnyArray, repeats: int, seed: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Means and ends of 95% intervals (columns,) of what is lost when a column is shuffled."""
    parts = np.array_split(np.arange(len(table)), max(2, min(PARTS, len(table) // FEWEST)))

    def score(_: object, shuffled: Float64Array, given: AnyArray) -> dict[str, float]:
        losses = about.losses(about.predict(shuffled), given)
        return {str(number): -float(losses[part].mean()) for number, part in enumerate(parts)}

    found = permutation_importance(about.model, table, target, scoring=score, n_repeats=repeats, random_state=seed)
    of_parts = np.array([found[str(number)].importances_mean for number in range(len(parts))])
    reach = student.ppf(0.975, len(parts) - 1) * of_parts.std(axis=0, ddof=1) / np.sqrt(len(parts))
    mean = of_parts.mean(axis=0)
    return mean, mean - reach, mean + reach


def _span(low: float, high: float) -> str:
    """Two numbers with as many digits as distinguish them, four at least.

    >>> _span(-0.25, 3.14159), _span(1e9, 1e9 + 2)
    ('-0.25 to 3.142', '1000000000 to 1000000002')
    """
    digits = next((d for d in range(4, 17) if f"{low:.{d}g}" != f"{high:.{d}g}"), 17 if low < high else 4)
    return f"{low:.{digits}g} to {high:.{digits}g}"


def find_effects(
    about: Explained,
    table: Float64Array,
    target: AnyArray | None,
    *,
    repeats: int,
    points: int,
    max_rows: int,
    random: np.random.RandomState,
) -> Effects:
    """Importances and curves on a table (rows, columns), or some rows of it; `target` is as `losses` takes it."""
    check_integer("repeats", repeats, 1)
    check_integer("points", points, 2)
    check_integer("max_rows", max_rows, 2)
    if len(table) < 2:
        raise invalid("X", "must have two rows or more", len(table))
    chosen = random.permutation(len(table))[:max_rows]
    table = table[chosen]
    given = about.predict(table) if target is None else target[chosen]
    importances = find_importances(about, table, given, repeats, random.randint(2**31 - 1))
    curves = tuple(_curve(about, table, index, points) for index in range(table.shape[1]))
    if about.classes is None:
        count = curves[0].mean.shape[1]
        outputs = ["y"] if count == 1 else [f"y{number}" for number in range(count)]
    else:
        outputs = [f"probability of {label}" for label in about.classes[1 if len(about.classes) == 2 else 0 :]]
    measure = "share of the variance" if about.classes is None else "log loss"
    return Effects(type(about.model).__name__, *importances, measure, curves, tuple(outputs), len(table))


def _curve(about: Explained, table: Float64Array, index: int, points: int) -> EffectCurve:
    values = _values(table[:, index], points, index in about.categories)
    rows = table[:CURVE_ROWS]
    moved = np.repeat(rows[None], len(values), axis=0)
    moved[:, :, index] = values[:, None]
    predicted = about.predict(moved.reshape(-1, table.shape[1])).reshape(len(values), len(rows), -1)
    if about.classes is not None and len(about.classes) == 2:
        predicted = predicted[:, :, 1:]
    mean = predicted.mean(axis=1)
    # Each row's curve less its own level, plus the level of the mean.
    levelled = predicted - predicted.mean(axis=0) + mean.mean(axis=0)
    low, high = np.quantile(levelled, BAND, axis=1)
    if about.classes is not None:
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    labels = about.categories.get(index)
    shown = tuple(
        None if value != value else value if labels is None else labels[int(value)] for value in values.tolist()
    )
    return EffectCurve(about.names[index], "number" if labels is None else "category", shown, mean, low, high)


def _values(column: Float64Array, points: int, codes: bool) -> Float64Array:
    """Values (points,) a column is set to: quantiles, or its most frequent categories; then NaN if it has gaps."""
    known = column[~np.isnan(column)]
    distinct, counts = np.unique(known[known >= 0] if codes else known, return_counts=True)  # UNSEEN is below 0
    if codes:
        distinct = np.sort(distinct[np.argsort(-counts, kind="stable")[:points]])
    elif len(distinct) > points:
        distinct = np.unique(np.quantile(known, np.linspace(*ENDS, points)))
    gaps = len(known) < len(column) or not len(distinct)
    return np.append(distinct, np.nan) if gaps else distinct
