"""`SparseActivationRegressor` and `SparseActivationClassifier`: learning inside H(n, s, k) (sparse-activations)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from fewfire._classes import class_places, find_classes, is_balanced
from fewfire._errors import invalid
from fewfire._validate import check_finite, check_number, check_sample_weight
from fewfire.learners._fitting import all_or_nothing, label_unit
from fewfire.learners.sparse_activation._base import SparseActivationBase
from fewfire.learners.sparse_activation._losses import CrossEntropy, LogisticLoss, SquaredLoss

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, IdArray


class SparseActivationRegressor(RegressorMixin, SparseActivationBase):  # type: ignore[misc]
    """Predict a number with a two-layer ReLU network of which at most k neurons fire on an input.

    The network is f(x) = Σ_j u_j σ(⟨w_j, x⟩ + b_j) + c, of the class H(n, s, k) with scales W and B of
    sparse-activations, Definitions 1 and 2, up to its constant c. On every training row at most k neurons fire; on new
    rows of the same distribution nearly always, and `fewfire.networks.check_sparsity(model.network_, k, X=rows)` says
    how often more do. Tables of ±1 are taken as they are, other columns brought to mean 0 and deviation 1.

    Parameters
    ----------
    width : int
        Neurons, s.
    k : int
        The most that may fire on a training row; k = width gives a dense network, trained in the same way.
    W, B : float, optional
        Bounds on max_j |u_j|·‖w_j‖ and max_j |u_j|·|b_j|, in units of y and of the inputs described above.
    weight_decay : "auto" or float
        Each step shrinks the weights by learning_rate · weight_decay; "auto" chooses 0, 0.03, 0.1 or 0.3 by the loss on
        held-out rows, and then trains on all.
    learning_rate, steps, batch_size : float, int, int or None
        Of AdamW; the rate falls to a hundredth along a cosine. None takes all rows at every step, in float64, so that a
        row of weight 2 equals two rows; minibatches are in float32, two to four times as fast.
    price, margin : float
        What a neuron beyond the k strongest pays for firing, or for being within the margin of it, in units of the
        loss and of the standardised labels.
    fit_intercept : bool
        Whether there is a constant c; without it the network is in the class itself.
    validation_fraction : float
        Share of the rows that weight_decay="auto" holds out.
    random_state : int, RandomState or None
        Decides start, minibatches and which rows are held out.
    verbose : bool
        Show the progress as one bar, in a notebook or on standard error.

    Attributes
    ----------
    network_ : TwoLayer
        On rows of X, in float64; in the form with largest |u_j| = 1.
    sparsity_ : SparsityReport
        How many neurons fire on the training rows: `max_active`, `counts`, `exceeding()`, which is 0.
    norms_ : Norms
        W and B of the network, in the units of the parameters of these names.
    weight_decay_ : float
    decay_scores_ : dict of weight decay to held-out loss
        Empty where the decay was given or fewer than 20 rows were.
    n_iter_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from fewfire.networks import construct
    >>> from fewfire.problems import NetworkTarget
    >>> X, y = NetworkTarget(construct.random_member(12, 8, 2, seed=0)).sample(600, seed=0)
    >>> model = SparseActivationRegressor(32, 2, random_state=0).fit(X, y)
    >>> model.sparsity_.max_active
    2
    """

    @all_or_nothing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to a table (samples, columns), numbers (samples,) and weights (samples,)."""
        table, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        labels = np.asarray(check_finite("y", labels.astype(np.float64)), dtype=np.float64)
        table, labels, weights = _weighted(table, labels, sample_weight)
        unit = label_unit(labels)
        scaled = labels / unit
        centre = float(np.average(scaled, weights=weights)) if self.fit_intercept else 0.0
        spread = float(np.sqrt(np.average((scaled - centre) ** 2, weights=weights))) or 1.0
        scores = (scaled - centre) / spread

        def loss_of(rows: IdArray) -> SquaredLoss:
            return SquaredLoss(scores[rows])

        self._fit(table, weights, loss_of, centre * unit, spread * unit)
        return self

    def predict(self, X: object) -> Float64Array:
        """The number for every row, shape (samples,)."""
        return self._outputs(X)


class SparseActivationClassifier(ClassifierMixin, SparseActivationBase):  # type: ignore[misc]
    """Classify with a two-layer ReLU network of which at most k neurons fire on an input.

    One network of the class H(n, s, k): its value is the logarithm of the odds of `classes_[1]`, or with more than two
    classes it has an output per class, which a softmax makes probabilities.

    Parameters and attributes are those of `SparseActivationRegressor`, W and B being bounds on these scores, the
    largest over outputs, and

    Parameters
    ----------
    class_weight : None, "balanced" or dict of class to weight
        Multiplies the weights of samples; "balanced" gives all classes the same total.

    Attributes
    ----------
    classes_ : array of labels, ascending

    Examples
    --------
    >>> import fewfire as ff
    >>> X, y = ff.problems.Parity(n=10, k=2).sample(500, seed=0)
    >>> model = ff.SparseActivationClassifier(width=32, k=4, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        width: int = 64,
        k: int = 4,
        *,
        W: float | None = None,
        B: float | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        learning_rate: float = 0.1,
        steps: int = 2000,
        batch_size: int | None = 32,
        price: float = 1.0,
        margin: float = 0.1,
        fit_intercept: bool = True,
        validation_fraction: float = 0.2,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            width,
            k,
            W=W,
            B=B,
            weight_decay=weight_decay,
            learning_rate=learning_rate,
            steps=steps,
            batch_size=batch_size,
            price=price,
            margin=margin,
            fit_intercept=fit_intercept,
            validation_fraction=validation_fraction,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to a table (samples, columns), classes (samples,) and weights (samples,)."""
        table, labels = validate_data(self, X, y, dtype=np.float64)
        table, labels, weights = _weighted(table, labels, sample_weight)
        classes = find_classes(labels)
        places = class_places(labels, classes)
        weights = weights * _class_weights(self.class_weight, classes, places, weights)[places]
        if not weights.all():
            table, places, weights = table[weights > 0.0], places[weights > 0.0], weights[weights > 0.0]

        def loss_of(rows: IdArray) -> LogisticLoss | CrossEntropy:
            if len(classes) == 2:
                return LogisticLoss(np.where(places[rows] == 1, 1.0, -1.0))
            return CrossEntropy(places[rows], len(classes))

        self._fit(table, weights, loss_of)
        self.classes_ = classes
        return self

    def decision_function(self, X: object) -> Float64Array:
        """The network at every row: (samples,), positive for `classes_[1]`, or (samples, classes) for more than two."""
        return self._outputs(X)

    def predict(self, X: object) -> AnyArray:
        """The class of every row, shape (samples,)."""
        scores = self._outputs(X)
        places = (scores > 0.0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: object) -> Float64Array:
        """The probability of each class, shape (samples, classes)."""
        scores = self._outputs(X)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        second = expit(scores)
        return np.stack([1.0 - second, second], axis=1)


def _weighted(
    table: Float64Array, labels: AnyArray, sample_weight: object
) -> tuple[Float64Array, AnyArray, Float64Array]:
    """The rows whose weight is not 0, their labels and weights."""
    weights = check_sample_weight(sample_weight, len(labels))
    kept = weights > 0.0
    return (table, labels, weights) if kept.all() else (table[kept], labels[kept], weights[kept])


def _class_weights(class_weight: object, classes: AnyArray, places: IdArray, weights: Float64Array) -> Float64Array:
    """The factor of each class, shape (classes,)."""
    if class_weight is None:
        return np.ones(len(classes))
    if is_balanced(class_weight):
        totals = np.bincount(places, weights=weights, minlength=len(classes))
        return np.asarray(totals.sum() / (len(classes) * totals))
    if not isinstance(class_weight, Mapping):
        raise invalid("class_weight", "must be None, 'balanced' or a dict of weights", class_weight)
    factors = [
        check_number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), 0.0) for label in classes.tolist()
    ]
    if np.count_nonzero(factors) < 2:
        raise invalid("class_weight", "must be above 0 for two classes at least", dict(class_weight))
    return np.array(factors)
