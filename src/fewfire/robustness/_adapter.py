"""How a model comes to be attacked and certified: an adapter per kind of model, found in a registry.

An adapter is a function of the model and of what it is attacked with that gives, as a `ModelAdapter`, what the scores
are and of which classes. It is registered for a class, or for the name of one in a package that need not be
imported; subclasses are served as well. To attack a new kind of model, write one such function, as `register_adapter`
shows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fewfire._errors import FewfireWarning, invalid
from fewfire._validate import check_inputs, check_labels, check_number, counted
from fewfire.robustness._threats import ball, check_radii, restrict

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._formula import Scores
    from fewfire.robustness._threats import Norm, Threat

    Adapt = Callable[[Any, object, object], "ModelAdapter"]


@dataclass(frozen=True, eq=False)
class ModelAdapter:
    """A model as attacks and certificates see it.

    Parameters
    ----------
    scores : Scores
        Of points of shape (rows, inputs): one for two classes (positive for the second) or a number, else one per
        class. Two scores of two classes are taken too: their difference counts.
    classes : array of shape (classes,), ascending, or None for a regressor
    space : object, optional
        Where the adversary moves, when that is not the user's table itself: `columns` of that table, `points(X)` of its
        rows, and `rows(points, X)` of points moved from X.
    threat : function of (rho, norm, bounds), each None where the user gave none, optional
        The model's own adversary; a ball, whose rho the user must give, without it.
    predict : function from rows (rows, columns) to predictions (rows,), optional
        The model's own predictions, where they might differ from its scores by a rounding.
    shape : tuple of int, optional
        Of one row as the user has it, such as (channels, height, width) of an image; here rows are vectors.
    """

    scores: Scores
    classes: AnyArray | None
    space: Any = None
    threat: Callable[[float | None, Norm | None, Any], Threat] | None = None
    predict: Callable[[Float64Array], AnyArray] | None = None
    shape: tuple[int, ...] = ()

    def check_rows(self, X: Any) -> Float64Array:
        """A table of finite numbers with the model's columns, as float64."""
        columns = self.scores.inputs if self.space is None else self.space.columns
        if self.shape and np.shape(X)[1:] == self.shape:
            X = np.reshape(np.asarray(X), (len(np.asarray(X)), columns))
        return np.asarray(check_inputs("X", X, columns, np.dtype(np.float64)), dtype=np.float64)

    def points(self, X: Float64Array) -> Float64Array:
        """The points that rows (rows, columns) are."""
        return X if self.space is None else np.asarray(self.space.points(X))

    def rows(self, points: Float64Array, X: Float64Array) -> Float64Array:
        """The rows of moved points."""
        return points if self.space is None else np.asarray(self.space.rows(points, X))

    def labels(self, y: object, rows: int, name: str = "y") -> AnyArray:
        """Labels (rows,) as criteria take them."""
        if self.classes is None:
            return check_labels(name, y, rows)
        labels = np.asarray(y)
        if labels.shape != (rows,):
            raise invalid(name, f"must be a vector of {rows} labels, one per row of X", f"shape {labels.shape}")
        unknown = labels[~np.isin(labels, self.classes)]
        if unknown.size:
            rule = f"must hold classes of the model, {', '.join(map(str, self.classes))}"
            raise invalid(name, rule, unknown[0].item(), "attack rows of these classes")
        return np.asarray(encode(self.classes, labels))

    def adversary(self, rho: Any, norm: Norm | None, bounds: Any, **limits: Any) -> Threat:
        """The adversary of these arguments, with those of `restrict`; the model's own where none is given."""
        columns, rho = self.scores.inputs, np.ravel(rho) if np.ndim(rho) > 1 else rho
        if bounds is not None and np.iterable(bounds):
            bounds = tuple(np.ravel(end) if np.ndim(end) > 1 else end for end in bounds)
        radii = None if rho is None or np.ndim(rho) == 0 else check_radii(rho, columns)
        radius = rho if radii is None else float(radii.max())
        if self.threat is not None:
            threat = self.threat(radius, norm, bounds)
        elif radius is None:
            remedy = "pass the radius of the adversary in the units of X"
            raise invalid("rho", "must be given for this model", None, remedy)
        else:
            threat = ball(norm or "l2", check_number("rho", radius, 0.0), bounds, columns)
        return restrict(threat, radii, columns, **limits)

    def own_predictions(self, rows: Float64Array, scores: Float64Array) -> AnyArray:
        """The model's own predictions of rows (rows, columns) with these scores, shape (rows,)."""
        if self.predict is None or self.classes is None or not len(rows):
            return self.predictions(scores)
        return without_names(self.predict, rows)

    def predictions(self, scores: Float64Array) -> AnyArray:
        """Classes or numbers (rows,) of scores (rows, heads)."""
        if self.classes is None:
            return scores[:, 0]
        index = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes[index])


def in_units(rho: Any, units: str | None, X: object) -> Any:
    """ρ in the units of X: itself, or, of units "std", times the columns' standard deviations."""
    if units is None:
        return rho
    if units != "std" or rho is None:
        rule = "must be None or 'std', for a rho in standard deviations of the columns of X"
        raise invalid("units", rule, units if units != "std" else "no rho", "write rho=0.1, units='std'")
    return np.multiply(rho, np.std(np.asarray(X, dtype=np.float64), axis=0))


def without_names(method: Callable[[Float64Array], Any], rows: Float64Array) -> AnyArray:
    """What a method of a model gives for rows that have the columns of the fit, without their names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return np.asarray(method(rows))


def encode(classes: AnyArray, labels: AnyArray) -> Any:
    """Labels (rows,) as criteria take them: signs for two classes, class numbers for more."""
    if len(classes) == 2:
        return np.where(labels == classes[1], 1.0, -1.0)
    return np.searchsorted(classes, labels)


SAMPLE: Final = 512  # rows at which a score is evaluated, to distinguish it from a probability or a number


def two_classes(labels: AnyArray, probability: bool = False) -> AnyArray | None:
    """The classes of a single score by its labels: ±1, or 0 and 1; None where they are what a regressor predicts.

    For a `probability` 1 alone is a class of 0 and 1. Numbers that are all 0.0, and two others that repeat, as 1 and 2
    do, are taken for a regressor's, in words.
    """
    if np.all(np.isin(labels, (-1, 1))) and not (probability and np.all(labels == 1)):
        return np.array([-1, 1])
    if not np.all(np.isin(labels, (0, 1))):
        values, counts = np.unique(labels, return_counts=True)
        if len(values) == 2 and counts.min() > 1 and not probability and labels.dtype.kind in "iuf":
            text = f"y may hold classes or numbers; got {values[0]} and {values[1]} alone. They are read as what a"
            text += " regressor should predict. Remedy: if they are classes, pass them as 0 and 1."
            warnings.warn(text, FewfireWarning, stacklevel=2)
        return None
    if labels.size and labels.dtype.kind not in "biu" and not probability and not np.any(labels):
        text = "y may hold classes or numbers; got 0.0 alone. It is read as what a regressor should predict."
        warnings.warn(f"{text} Remedy: pass integers where 0 is a class.", FewfireWarning, stacklevel=2)
        return None
    return np.array([0, 1])


def check_score(scores: Scores, table: Float64Array, labels: AnyArray, classes: AnyArray) -> None:
    """Refuse a single score whose sign is not the class, as far as labels of both classes show; warn otherwise."""
    some = np.unique(np.linspace(0, len(table) - 1, min(len(table), SAMPLE)).astype(np.int64))
    values = scores.scores(table[some])[:, 0]
    above, mixed = bool(np.all(values > 0.0)), len(np.unique(labels)) == 2
    probable = bool(np.all((values >= 0.0) & (values <= 1.0)))
    remedy = "return the score before the sigmoid, or end in torch.nn.Sigmoid() with nothing after it"
    rule = "must give one score whose sign is the class"
    if mixed and not probable and labels.shape == (len(table),):
        second = labels[some] == classes[1]
        near = np.mean((values - second) ** 2) < np.var(second)
        if near and np.mean((values > 0.5) == second) > np.mean((values > 0.0) == second):
            raise invalid("model", rule, "a number near 0 or 1, for the class itself", "return it less 0.5")
    if not probable and not (mixed and (above or np.all(values <= 0.0))):
        return
    got = f"a score that is {'always' if above else 'never'} positive"
    if probable:
        above = True
        got = "a probability, as it seems: every output is within [0, 1]"
        if mixed:
            raise invalid("model", rule, got, remedy)
    text = f"model {rule}; got {got}. It is read as a score, so that every row is of class {classes[int(above)]}"
    warnings.warn(f"{text}. Remedy: {remedy}.", FewfireWarning, stacklevel=2)


_ADAPTERS: dict[type | str, Adapt] = {}
# In the order of registration, after fewfire's own estimators: these register with the packages that define them, and
# an error should name them whether or not such a package has been imported.
_DESCRIPTIONS: dict[str, None] = dict.fromkeys(
    ("TabularClassifier, TabularRegressor", "ParityNetClassifier", "RobustClassifier, RobustRegressor")
)


def register_adapter(*kinds: type | str, described: str | None = "") -> Callable[[Adapt], Adapt]:
    """Register how models of some kinds are attacked: a decorator of functions (model, X, y) to ModelAdapter.

    The function gets the table and the labels as the user gave them; most need neither. It should refuse a model that
    is not fitted.

    Parameters
    ----------
    *kinds : classes, or names of classes with their package
        "torch.nn.Module" serves every class of that name defined anywhere in torch.nn, and its subclasses, unimported.
        Of several kinds that a model is, the most derived one counts.
    described : str or None
        What an error about other models calls them; the names of the classes unless given. None leaves them out, as
        adapters that only refuse ask for.

    Examples
    --------
    >>> from fewfire.robustness import Layers, ModelAdapter, register_adapter
    >>> @register_adapter("my_package.Linear")
    ... def linear(model, X, y):
    ...     return ModelAdapter(Layers((model.coef_.T,), (model.intercept_,)), model.classes_)
    """
    names = ", ".join(kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2] for kind in kinds)
    for kind in kinds:
        if not isinstance(kind, type) and not (isinstance(kind, str) and "." in kind):
            rule = "must be classes, or names of classes with their package"
            raise invalid("kinds", rule, kind, "write 'sklearn.linear_model.Ridge'")

    def register(adapt: Adapt) -> Adapt:
        _ADAPTERS.update(dict.fromkeys(kinds, adapt))
        if described is not None:
            _DESCRIPTIONS[described or names] = None
        return adapt

    return register


def adapter_of(model: Any, X: object, y: object) -> ModelAdapter:
    """How a fitted model is seen; table and labels decide what a bare network is."""
    adapt = next((adapt for kind in type(model).__mro__ if (adapt := _registered(kind)) is not None), None)
    if adapt is None:
        remedy = "register an adapter for it with fewfire.robustness.register_adapter"
        raise invalid("model", f"must be a fitted {', '.join(_DESCRIPTIONS)}", f"a {type(model).__name__}", remedy)
    return _one_score(adapt(model, X, y))


def _registered(kind: type) -> Adapt | None:
    """The entry for a class: its own, or that of its name in a package that it is defined in."""
    if kind in _ADAPTERS:
        return _ADAPTERS[kind]
    for entry, adapt in _ADAPTERS.items():
        package, _, name = entry.rpartition(".") if isinstance(entry, str) else ("", "", "")
        if name == kind.__name__ and f"{kind.__module__}.".startswith(f"{package}."):
            return adapt
    return None


def _one_score(adapter: ModelAdapter) -> ModelAdapter:
    """The adapter, with as many scores as its classes need."""
    heads = adapter.scores.scores(np.zeros((1, adapter.scores.inputs))).shape[1]
    if adapter.classes is not None and len(adapter.classes) == heads == 2:
        return replace(adapter, scores=adapter.scores.lead())
    asked = 1 if adapter.classes is None or len(adapter.classes) == 2 else len(adapter.classes)
    if heads != asked:
        kind = "a regressor" if adapter.classes is None else f"{len(adapter.classes)} classes"
        rule, got = f"must have {counted(asked, 'score')} per row for {kind}", f"a table of {heads}"
        raise invalid("model", rule, got, "one label per row can be attacked: return one score per class")
    return adapter
