"""How a model comes to be attacked and certified: an adapter per kind of model, found in a registry.

An adapter is a function of the model and of what it is attacked with that says, as a `ModelAdapter`, what the scores
are and which classes they speak of. It is registered for a class, or for the name of one in a package that need not be
imported; subclasses are served as well. To attack a new kind of model, write one such function:

>>> from fewfire.robustness import LayeredScores, ModelAdapter, register_adapter
>>> @register_adapter("my_package.Centroids")
... def centroids(model, X, y):
...     half = (model.centres**2).sum(axis=1) / 2
...     return ModelAdapter(LayeredScores((model.centres.T,), (-half,)), model.classes_)
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_inputs, check_labels
from fewfire.robustness import _criteria
from fewfire.robustness._score_function import LeadScores

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._criteria import Criterion
    from fewfire.robustness._score_function import Scores
    from fewfire.robustness._threats import Norm, Threat

    Adapt = Callable[[Any, object, object], "ModelAdapter"]

T = TypeVar("T")


class PointSpace(Protocol):
    """Where an adversary moves, when that is not the user's table itself."""

    @property
    def columns(self) -> int:
        """Columns of the user's table."""

    def points(self, X: Float64Array) -> Float64Array:
        """The points that rows (rows, columns) are."""

    def rows(self, points: Float64Array, X: Float64Array) -> Float64Array:
        """The rows that moved points stand for; X holds those they started from."""


@dataclass(frozen=True, eq=False)
class ModelAdapter:
    """A model as attacks and certificates see it.

    Parameters
    ----------
    scores : Scores
        Of points of shape (rows, inputs): one for two classes (positive for the second) or a number, else one per
        class. Two scores of two classes are taken too: their difference counts.
    classes : array of shape (classes,), ascending, or None for a regressor
    space : PointSpace, optional
        Turns rows into points where they are not the same.
    threat : function of (rho, norm, bounds), each None where the user said nothing, optional
        The model's own adversary; a ball, whose rho the user must give, without it.
    predict : function from rows (rows, columns) to predictions (rows,), optional
        The model's own word, where that might differ from its scores by a rounding.
    """

    scores: Scores
    classes: AnyArray | None
    space: PointSpace | None = None
    threat: Callable[[float | None, Norm | None, Any], Threat] | None = None
    predict: Callable[[Float64Array], AnyArray] | None = None

    def check_rows(self, X: object) -> Float64Array:
        """A table of finite numbers with the model's columns, as float64."""
        columns = self.scores.inputs if self.space is None else self.space.columns
        return np.asarray(check_inputs("X", X, columns, np.dtype(np.float64)), dtype=np.float64)

    def points(self, X: Float64Array) -> Float64Array:
        """The points that rows (rows, columns) are."""
        return X if self.space is None else self.space.points(X)

    def rows(self, points: Float64Array, X: Float64Array) -> Float64Array:
        """The rows that moved points stand for."""
        return points if self.space is None else self.space.rows(points, X)

    def labels(self, y: object, rows: int) -> AnyArray:
        """Labels (rows,) as criteria take them."""
        if self.classes is None:
            return check_labels("y", y, rows)
        labels = np.asarray(y)
        if labels.shape != (rows,):
            raise invalid("y", f"must be a vector of {rows} labels, one per row of X", f"shape {labels.shape}")
        unknown = labels[~np.isin(labels, self.classes)]
        if unknown.size:
            rule = f"must hold classes the model knows, {', '.join(map(str, self.classes))}"
            raise invalid("y", rule, unknown[0].item(), "attack rows of these classes")
        return np.asarray(_criteria.encode(self.classes, labels))

    def criterion(self, labels: AnyArray) -> Criterion:
        """What an attack raises: −margin, or the error of a regressor."""
        if self.classes is None:
            return _criteria.error(labels)
        return _criteria.negative_margin(labels, 1 if len(self.classes) == 2 else len(self.classes))

    def own_predictions(self, rows: Float64Array, scores: Float64Array) -> AnyArray:
        """What the model itself says of rows (rows, columns) with these scores, shape (rows,)."""
        if self.predict is None or self.classes is None or not len(rows):
            return self.predictions(scores)
        with warnings.catch_warnings():  # the rows have the columns of the fit, without their names
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            return np.asarray(self.predict(rows))

    def predictions(self, scores: Float64Array) -> AnyArray:
        """Classes or numbers (rows,) of scores (rows, heads)."""
        if self.classes is None:
            return scores[:, 0]
        place = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes[place])


class KindRegistry(Generic[T]):
    """Entries by kind of object: a class, or "package.Class" for a class of that name defined anywhere in the package.

    Names are public ones, "sklearn.linear_model.Ridge"; the private module that defines the class does not matter, and
    nothing is imported. Of several entries that fit, that of the most derived class counts, the latest one for a class.
    """

    def __init__(self) -> None:
        self._types: dict[type, T] = {}
        self._names: dict[str, dict[str, T]] = {}  # class name: package: entry

    def add(self, kind: type | str, entry: T) -> None:
        """Enter one kind."""
        if isinstance(kind, type):
            self._types[kind] = entry
            return
        package, _, name = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
        if not package:
            rule = "must be classes, or names of classes with their package"
            raise invalid("kinds", rule, kind, "write 'sklearn.linear_model.Ridge'")
        self._names.setdefault(name, {})[package] = entry

    def find(self, value: object) -> T | None:
        """The entry for an object, or None."""
        for kind in type(value).__mro__:
            if kind in self._types:
                return self._types[kind]
            for package, entry in self._names.get(kind.__name__, {}).items():
                if f"{kind.__module__}.".startswith(f"{package}."):
                    return entry
        return None


_ADAPTERS: KindRegistry[Adapt] = KindRegistry()
# In the order of registration, after fewfire's own estimators: these register with the packages that define them, and
# an error should name them whether or not such a package has been imported.
_DESCRIPTIONS: dict[str, None] = dict.fromkeys(
    ("SparseInitClassifier, SparseInitRegressor", "ParityNetClassifier", "RobustClassifier, RobustRegressor")
)


def register_adapter(*kinds: type | str, described: str | None = "") -> Callable[[Adapt], Adapt]:
    """Say how models of some kinds are attacked and certified: a decorator of functions (model, X, y) to ModelAdapter.

    The function gets the table and the labels as the user gave them; most need neither. It should refuse a model that
    is not fitted.

    Parameters
    ----------
    *kinds : classes, or names of classes with their package
        "torch.nn.Module" serves every class of that name defined in the package, and its subclasses, unimported.
    described : str or None
        What an error about other models calls them; the names of the classes unless given. None leaves them out, as
        adapters that only refuse ask for.

    Examples
    --------
    >>> from fewfire.robustness import LayeredScores, ModelAdapter, register_adapter
    >>> @register_adapter("my_package.Linear")
    ... def linear(model, X, y):
    ...     return ModelAdapter(LayeredScores((model.coef_.T,), (model.intercept_,)), model.classes_)
    """
    names = ", ".join(kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2] for kind in kinds)

    def register(adapt: Adapt) -> Adapt:
        for kind in kinds:
            _ADAPTERS.add(kind, adapt)
        if described is not None:
            _DESCRIPTIONS[described or names] = None
        return adapt

    return register


def adapter_of(model: Any, X: object, y: object) -> ModelAdapter:
    """How a fitted model is seen; table and labels decide what a bare network is."""
    adapt = _ADAPTERS.find(model)
    if adapt is None:
        remedy = "register an adapter for it with fewfire.robustness.register_adapter"
        raise invalid("model", f"must be a fitted {', '.join(_DESCRIPTIONS)}", f"a {type(model).__name__}", remedy)
    return _one_score(adapt(model, X, y))


def _one_score(adapter: ModelAdapter) -> ModelAdapter:
    """The adapter, with as many scores as its classes ask for."""
    heads = adapter.scores.scores(np.zeros((1, adapter.scores.inputs))).shape[1]
    if adapter.classes is not None and len(adapter.classes) == heads == 2:
        return replace(adapter, scores=LeadScores(adapter.scores))
    asked = 1 if adapter.classes is None or len(adapter.classes) == 2 else len(adapter.classes)
    if heads != asked:
        kind = "a regressor" if adapter.classes is None else f"{len(adapter.classes)} classes"
        rule, got = f"must have {asked} score{'s' * (asked > 1)} per row for {kind}", f"a table of {heads}"
        raise invalid("model", rule, got, "one label per row can be attacked: return one score per class")
    return adapter
