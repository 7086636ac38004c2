"""`SparseActivationRegressor` and `SparseActivationClassifier`: learning inside H(n, s, k) (sparse-activations)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._explanation import Explanation
from fewfire._progress import progress_callback
from fewfire._random import Stream
from fewfire._threads import calm_products
from fewfire._types import AnyArray, Float64Array, IdArray
from fewfire._validate import check_finite, check_integer, check_number, class_indices, find_classes
from fewfire.learners._fitting import (
    ScoreClassifier,
    all_or_nothing,
    class_weighted,
    label_unit,
    probabilities,
    weighted_rows,
)
from fewfire.learners._signs import column_names
from fewfire.learners._sparse_activation._training import (
    MemberLoss,
    TrainingRule,
    class_loss,
    squared_loss,
    train_members,
)
from fewfire.networks import TwoLayer, check_sparsity
from fewfire.networks._two_layer import Norms
from fewfire.robustness import Layers, ModelAdapter, register_adapter

DECAYS = (0.0, 0.03, 0.1, 0.3)  # what weight_decay="auto" chooses from
DECAY, FEWEST = 0.1, 20  # the weight decay where there are fewer rows than it takes to hold some out


@dataclass(eq=False, repr=False)
class SparseActivationBase(BaseEstimator):  # type: ignore[misc]
    """A network of H(n, s, k); see `SparseActivationRegressor` for parameters and attributes."""

    width: int = 64
    k: int = 4
    _: KW_ONLY
    W: float | None = None
    B: float | None = None
    weight_decay: float | Literal["auto"] = "auto"
    learning_rate: float = 0.1
    steps: int = 2000
    batch_size: int | None = 32
    price: float = 1.0
    margin: float = 0.01
    fit_intercept: bool = True
    validation_fraction: float = 0.2
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    def explain(self, top: int = 5) -> Explanation:
        """What was fitted, how many neurons fire, and the `top` neurons that carry most; its table has them all."""
        check_is_fitted(self)
        top = check_integer("top", top, 0)
        network, seen = self.network_, self.sparsity_
        mean = float(seen.counts @ np.arange(len(seen.counts)) / seen.inputs_checked)
        bounds = [f"{name} = {value:.4g}" for name, value in zip("WB", self.norms_, strict=True)]
        lines = [
            f"{network.width} neurons on {network.inputs} columns, at most {self.k} to fire; {', '.join(bounds)}",
            f"on {seen.inputs_checked} training rows {mean:.2f} fire on average, {seen.max_active} at most; "
            f"{self.alive_} of {network.width} neurons fire on some row",
        ]
        scores = ", ".join(f"{decay:g}: {loss:.4g}" for decay, loss in self.decay_scores_.items())
        lines.append(f"weight decay {self.weight_decay_:g}" + (f" (held-out loss by decay {scores})" if scores else ""))
        reach = np.abs(network.output.reshape(network.width, -1)).max(axis=1)
        strength = self.firing_ * reach * np.linalg.norm(network.hidden, axis=1)
        names, order = column_names(self), np.argsort(-strength, kind="stable")
        for neuron in order[:top].tolist():
            if not strength[neuron]:
                break
            row = network.hidden[neuron]
            heavy = np.argsort(-np.abs(row), kind="stable")[:4]
            terms = " ".join(f"{row[column]:+.3g}·{names[column]}" for column in heavy.tolist() if row[column])
            more = " …" if np.count_nonzero(row) > len(heavy) else ""
            sign = np.atleast_1d(network.output[neuron])
            outputs = f"output {sign[0]:+.3g}" if len(sign) == 1 else f"most for output {int(np.argmax(sign))}"
            lines.append(f"neuron {neuron}: fires on {self.firing_[neuron]:.1%}, {outputs}: {terms}{more}")
        table = {"neuron": order, "firing": self.firing_[order], "strength": strength[order]}
        return Explanation(type(self).__name__, lines, table)

    def _rule(self, unit: float) -> TrainingRule:
        """The checked parameters; scores are in units of `unit`, and so are the bounds on them."""
        width = check_integer("width", self.width, 1)
        bounds = [
            None if bound is None else check_number(name, bound, 0.0, open_low=name == "W") / unit
            for name, bound in (("W", self.W), ("B", self.B))
        ]
        return TrainingRule(
            width=width,
            k=check_integer("k", self.k, 1, width, "no more neurons can fire than there are"),
            W=bounds[0],
            B=bounds[1],
            learning_rate=check_number("learning_rate", self.learning_rate, 0.0, open_low=True),
            steps=check_integer("steps", self.steps, 1),
            batch_size=None if self.batch_size is None else check_integer("batch_size", self.batch_size, 1),
            price=check_number("price", self.price, 0.0),
            margin=check_number("margin", self.margin, 0.0),
            intercept=bool(self.fit_intercept),
        )

    def _fit(
        self,
        table: Float64Array,
        weights: Float64Array,
        loss_of: Callable[[IdArray], MemberLoss],
        centre: float = 0.0,
        unit: float = 1.0,
    ) -> None:
        """Train on a validated table, the loss of some rows being of scores with outputs centre + unit · score."""
        rule = self._rule(unit)
        share = check_number("validation_fraction", self.validation_fraction, 0.0, 1.0, open_low=True, open_high=True)
        given = None
        if not isinstance(self.weight_decay, str):
            given = check_number("weight_decay", self.weight_decay, 0.0, remedy="or pass 'auto'")
        elif self.weight_decay != "auto":
            raise invalid("weight_decay", "must be 'auto' or a number", self.weight_decay)
        random = check_random_state(self.random_state)
        stream = Stream(int(random.randint(2**31 - 1)), "member")
        inputs = _Inputs.learn(table, weights)
        x = np.ascontiguousarray(inputs.points(table), dtype=rule.precision)
        scores: dict[float, float] = {}
        with calm_products(len(x) * rule.width * x.shape[1]):
            if given is None and len(x) < FEWEST:
                given = DECAY
            elif given is None:  # the decay of least loss on held-out rows
                order = random.permutation(len(x))
                count = min(max(1, round(share * len(x))), len(x) - 1)
                held, kept = np.sort(order[:count]), np.sort(order[count:])
                fitted = weights[kept] / weights[kept].mean()
                stack = train_members(x[kept], loss_of(kept), fitted, DECAYS, rule, stream)
                losses = loss_of(held).value(stack.scores(stack.preactivations(x[held])))
                means = np.average(losses, axis=1, weights=weights[held])
                given, scores = DECAYS[int(np.argmin(means))], dict(zip(DECAYS, means.tolist(), strict=True))
            indices = np.arange(len(x))
            progress = progress_callback(bool(self.verbose), "training")
            stack = train_members(x, loss_of(indices), weights / weights.mean(), [given], rule, stream, progress)
        trained = stack.network(0)
        own = trained.norms()
        self.norms_ = Norms(own.W * unit, own.B * unit)
        self.network_ = inputs.on_columns(trained, centre, unit)
        self.sparsity_ = check_sparsity(self.network_, rule.k, X=table)
        self.firing_ = self.network_.activity(table).per_neuron / len(table)
        self.alive_ = int(np.count_nonzero(self.firing_))
        self.weight_decay_, self.decay_scores_ = given, scores
        self.n_iter_ = rule.steps

    def _outputs(self, X: object) -> Float64Array:
        """The network at every row, shape (rows,) or (rows, outputs)."""
        check_is_fitted(self)
        table = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.network_(table), dtype=np.float64)


class SparseActivationRegressor(RegressorMixin, SparseActivationBase):  # type: ignore[misc]
    """Predict a number with a two-layer ReLU network of which at most k neurons fire on an input.

    The network is f(x) = Σ_j u_j σ(⟨w_j, x⟩ + b_j) + c, of the class H(n, s, k) with scales W and B of
    sparse-activations, Definitions 1 and 2, up to its constant c. On every training row at most k neurons fire; on new
    rows of the same distribution nearly always, and `fewfire.networks.check_sparsity(model.network_, k, X=rows)` counts
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
        loss and of the standardised labels. A larger margin leaves fewer neurons alive, and fewer new rows on which
        more than k fire.
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
    alive_ : int
        Neurons that fire on any training row; the others could be deleted (Definition 1).
    firing_ : array of shape (width,)
        The share of the training rows on which each neuron fires: `np.flatnonzero(model.firing_)` are those alive.
    norms_ : Norms
        W and B of the network, in the units of the parameters of these names; at most those given.
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
        table, labels, weights = weighted_rows(table, labels, sample_weight)
        unit = label_unit(labels)
        scaled = labels / unit
        centre = float(np.average(scaled, weights=weights)) if self.fit_intercept else 0.0
        spread = float(np.sqrt(np.average((scaled - centre) ** 2, weights=weights))) or 1.0
        scores = (scaled - centre) / spread
        self._fit(table, weights, lambda rows: squared_loss(scores[rows]), centre * unit, spread * unit)
        return self

    def predict(self, X: object) -> Float64Array:
        """The number for every row, shape (samples,)."""
        return self._outputs(X)


@dataclass(eq=False, repr=False)
class SparseActivationClassifier(ScoreClassifier, SparseActivationBase):
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

    _: KW_ONLY
    class_weight: Literal["balanced"] | Mapping[Any, float] | None = None

    @all_or_nothing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to a table (samples, columns), classes (samples,) and weights (samples,)."""
        table, labels = validate_data(self, X, y, dtype=np.float64)
        table, labels, weights = weighted_rows(table, labels, sample_weight)
        classes = find_classes(labels)
        indices = class_indices(labels, classes)
        weights = class_weighted(self.class_weight, classes, indices, weights, least=2)
        table, indices, weights = weighted_rows(table, indices, weights)
        self._fit(table, weights, lambda rows: class_loss(indices[rows], len(classes)))
        self.classes_ = classes
        return self

    def decision_function(self, X: object) -> Float64Array:
        """The network at every row: (samples,), positive for `classes_[1]`, or (samples, classes) for more than two."""
        return self._outputs(X)

    def predict_proba(self, X: object) -> Float64Array:
        """The probability of each class, shape (samples, classes)."""
        return probabilities(self._outputs(X))


@dataclass(frozen=True, eq=False)
class _Inputs:
    """How columns become inputs: (x − centre)/spread; tables of ±1 are taken as they are, constant columns are 0."""

    centre: Float64Array
    spread: Float64Array
    varies: AnyArray

    @classmethod
    def learn(cls, table: Float64Array, weights: Float64Array) -> _Inputs:
        columns = table.shape[1]
        varies = np.ptp(table / np.maximum(np.abs(table).max(axis=0), 1e-300), axis=0) > 0
        if np.all(np.abs(table) == 1.0):
            return cls(np.zeros(columns), np.ones(columns), np.ones(columns, dtype=bool))
        largest = np.maximum(np.abs(table).max(axis=0), 1e-300)  # first to size 1, so that squares stay finite
        scaled = table / largest
        centre = np.average(scaled, axis=0, weights=weights)
        spread = np.sqrt(np.average((scaled - centre) ** 2, axis=0, weights=weights))
        varies &= spread > 0
        return cls(centre * largest, np.where(varies, spread, 1.0) * np.where(varies, largest, 1.0), varies)

    def points(self, table: Float64Array) -> Float64Array:
        return np.where(self.varies, (table - self.centre) / self.spread, 0.0)

    def on_columns(self, network: TwoLayer, centre: float, unit: float) -> TwoLayer:
        """The network as a function of rows, with outputs centre + unit · value."""
        hidden = np.where(self.varies, network.hidden / self.spread, 0.0)
        bias = network.bias - hidden @ np.where(self.varies, self.centre, 0.0)
        return TwoLayer(hidden * unit, bias * unit, network.output, network.offset * unit + centre)


@register_adapter(SparseActivationBase, described="SparseActivationClassifier, SparseActivationRegressor")
def _adapt(model: Any, X: object, y: object) -> ModelAdapter:
    """The network on columns of real numbers, one score per output."""
    check_is_fitted(model)
    return ModelAdapter(Layers.of(model.network_), getattr(model, "classes_", None))
