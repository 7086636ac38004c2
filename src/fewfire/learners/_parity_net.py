"""`ParityNetClassifier`: a sparse parity by minibatch SGD on a two-layer network (pareto, C.1).

The defaults are the paper's: rate 0.1, coupled decay 0.01 on all layers, batches of 32, hinge loss, 2 non-zero weights
per neuron at the start (or PyTorch's dense start). `ParityNetwork` is what every estimator of such a network shares:
columns as signs, predictions and probabilities, which inputs a network uses, which neurons were lucky from the start,
and how attacks and certificates see it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._dense.losses import LossName
from fewfire._errors import invalid
from fewfire._explanation import Explanation
from fewfire._progress import progress_callback
from fewfire._random import Stream
from fewfire._types import Float64Array, IdArray, SignArray
from fewfire._validate import check_choice, check_integer, check_number, two_classes
from fewfire.engines import Engine, Phase, Result, Run, Schedule, get_engine
from fewfire.learners._fitting import ScoreClassifier, all_or_nothing, logistic_slope, probabilities
from fewfire.learners._signs import Binarize, SignMap, column_names, learn_signs
from fewfire.networks import TwoLayer, init, relevance
from fewfire.robustness import Layers, ModelAdapter, register_adapter

InitName: TypeAlias = Literal["sparse", "dense"]
"""Few non-zero weights per neuron, or PyTorch's default."""


@dataclass(frozen=True, eq=False)
class SignedRows:
    """Inputs (samples, inputs) and labels (samples,) of ±1, some for validation or none, and what trains on them."""

    X: SignArray
    y: Float64Array
    validation: tuple[SignArray, Float64Array] | None
    seed: int
    engine: Engine
    progress: Callable[[int, int], object] | None = None

    @property
    def inputs(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    def run(self, initial: TwoLayer, schedule: Schedule) -> Run:
        """A schedule on the training rows, measured on those for validation."""
        X_test, y_test = self.validation or (None, None)
        return Run(initial, schedule, self.X, self.y, X_test, y_test, seed=self.seed)

    def train(self, initial: TwoLayer, schedule: Schedule) -> Result:
        """Train by a schedule on the training rows."""
        return self.engine.train([self.run(initial, schedule)], progress=self.progress)[0]


class ParityNetwork(ScoreClassifier, BaseEstimator):  # type: ignore[misc]
    """A two-layer network on columns of two values that finds which of them it uses; subclasses train it (`_train`)."""

    _sign_map: SignMap
    k: int | None
    width: int
    binarize: Binarize | None
    engine: str
    random_state: int | np.random.RandomState | None
    validation_fraction: float = 0.0
    verbose: bool = False

    @all_or_nothing
    def fit(self, X: object, y: object) -> Self:
        """Fit to a table of binary columns (samples, columns) and labels of two classes (samples,)."""
        table, labels = validate_data(self, X, y)
        classes, signs_of_labels = two_classes(labels)
        sign_map = learn_signs(table, column_names(self), self.binarize)
        rows = self._rows(sign_map.transform(table), signs_of_labels)
        initial, network, result = self._train(rows)
        self._sign_map = sign_map
        self.classes_, self.mapping_, self.active_ = classes, sign_map.mapping, sign_map.active
        self.network_, self.initial_network_ = network, initial
        self.history_, self.engine_, self.n_iter_ = result.history, result.engine, result.counters.steps
        X, y = rows.validation or (rows.X, rows.y)
        self.slope_ = logistic_slope(_outputs(network, X), y)
        # Without a column that varies, the network has looked at a made-up one.
        found = find_support(network, self.k) if len(self.active_) else ()
        self.lucky_neurons_ = self._lucky(initial, found) if found else np.empty(0, dtype=np.int64)
        self.support_ = tuple(int(self.active_[column]) for column in found)
        return self

    def _train(self, rows: SignedRows) -> tuple[TwoLayer, TwoLayer, Result]:
        """The initial network, the fitted one, and what the engine recorded."""
        raise NotImplementedError

    def _lucky(self, initial: TwoLayer, support: tuple[int, ...]) -> IdArray:
        return lucky_neurons(initial, support)

    def _rows(self, X: SignArray, y: Float64Array) -> SignedRows:
        random = check_random_state(self.random_state)
        share = check_number("validation_fraction", self.validation_fraction, 0.0, 1.0, open_high=True)
        check_integer("width", self.width, 1)
        if self.k is not None:
            check_integer("k", self.k, 1)
        X = _at_least_one_column(X)
        validation = None
        if share > 0:
            X, X_validation, y, y_validation = train_test_split(X, y, test_size=share, random_state=random)
            validation = X_validation, y_validation
        seed = int(random.randint(2**31 - 1))
        progress = progress_callback(bool(self.verbose), "training")
        return SignedRows(X, y, validation, seed, get_engine(self.engine), progress)

    def decision_function(self, X: object) -> Float64Array:
        """The network's output at every row, shape (samples,): positive for `classes_[1]`."""
        check_is_fitted(self)
        signs = self._sign_map.transform(validate_data(self, X, reset=False))
        return _outputs(self.network_, _at_least_one_column(signs))

    def predict_proba(self, X: object) -> Float64Array:
        """The probability of each class, shape (samples, 2): a logistic function of the network's output."""
        values = self.decision_function(X)
        return probabilities(self.slope_ * values)

    def explain(self) -> Explanation:
        """How the network was trained, which columns it uses and how many neurons were lucky, in three lines."""
        check_is_fitted(self)
        mass = relevance(self.network_).mass
        shares = mass[np.searchsorted(self.active_, np.array(self.support_, dtype=np.int64))]
        names = [str(self._sign_map.names[column]) for column in self.support_]
        share = float(shares.sum() / max(mass.sum(), 1e-300))
        weight = f"{share:.1%} of the weight: {', '.join(names)}" if names else "no weight: none varies"
        lines = [
            f"{self.network_.width} neurons, {self.n_iter_} steps by {self.engine_}{self._kept()}",
            f"{len(names)} of {self.n_features_in_} columns hold {weight}",
            f"{len(self.lucky_neurons_)} neurons were lucky from the start",
        ]
        return Explanation(type(self).__name__, lines, {"column": names, "weight": shares})

    def _kept(self) -> str:
        """Which weights `network_` has, where they are not the last."""
        return ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Cutting continuous columns in two loses most of the information in the standard data sets.
        tags.classifier_tags.poor_score = self.binarize is not None
        return tags


@dataclass(eq=False, repr=False)
class ParityNetClassifier(ParityNetwork):
    """Learn a sparse parity (or another Boolean function of few bits) by minibatch SGD on a two-layer network.

    Columns of ±1 are taken as they are; in any other column with two values the smaller becomes +1 and the larger −1.
    Constant columns are ignored; columns with more values are refused unless `binarize="median"`.

    Parameters
    ----------
    width : int
        Hidden neurons.
    init : {"sparse", "dense"}
        `sparsity` non-zero weights per neuron at the start, or PyTorch's default.
    sparsity : int
        Non-zero weights a neuron starts with.
    loss, learning_rate, weight_decay, batch_size, max_steps
        Of SGD; the decay is coupled, `batch_size=None` takes all rows at every step.
    k : int, optional
        How many columns `support_` names.
    validation_fraction : float
        Share held out, on which `predict_proba` is fitted; training stops as soon as that part is without error. With 0
        it trains all `max_steps`, and probabilities are fitted on the training rows, of which they are then too sure.
    binarize : None or "median"
    engine : str
        "auto" takes the fastest; `engine_` records it.
    random_state : int, RandomState or None
    verbose : bool
        Show the progress as one bar, in a notebook or on standard error.

    Attributes
    ----------
    support_ : tuple of int
        The columns found: the `k` of largest weight mass, or those above the widest gap when k is not given.
    network_, initial_network_ : TwoLayer
        On the columns `active_`.
    history_ : History
        What the engine recorded.
    lucky_neurons_ : array of int
        Neurons whose initial large weights contain `support_` or lie inside it; none for a dense start.
    slope_ : float
        Of the logistic function that makes probabilities of the network's output.
    engine_, classes_, active_, mapping_, n_iter_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import fewfire as ff
    >>> X, y = ff.problems.Parity(n=20, k=2, support=[4, 11]).sample(600, seed=0)
    >>> model = ff.ParityNetClassifier(width=200, max_steps=5000, random_state=0).fit(X[:500], y[:500])
    >>> model.score(X[500:], y[500:])
    1.0
    """

    width: int = 1000
    _: KW_ONLY
    init: InitName = "sparse"
    sparsity: int = 2
    loss: LossName = "hinge"
    learning_rate: float = 0.1
    weight_decay: float = 0.01
    batch_size: int | None = 32
    max_steps: int = 100_000
    k: int | None = None
    validation_fraction: float = 0.0
    binarize: Binarize | None = None
    engine: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    def _train(self, rows: SignedRows) -> tuple[TwoLayer, TwoLayer, Result]:
        steps, ones = check_integer("max_steps", self.max_steps, 1), check_integer("sparsity", self.sparsity, 1)
        rate = check_number("learning_rate", self.learning_rate, 0.0)
        check_choice("init", self.init, get_args(InitName))
        start = init.dense() if self.init == "dense" else init.sparse(min(ones, rows.inputs))
        initial = start(rows.inputs, self.width, Stream(rows.seed, "init"))
        phase = Phase(steps, rate, self.weight_decay, batch_size=self.batch_size)
        stop = None if rows.validation is None else 0.0
        evaluate: int | Literal["log"] = "log" if stop is None else max(1, steps // 100)
        result = rows.train(initial, Schedule((phase,), loss=self.loss, evaluate=evaluate, stop_error=stop))
        return initial, result.network, result


def find_support(network: TwoLayer, k: int | None) -> tuple[int, ...]:
    """The inputs that carry the weight mass: the k heaviest, or those above the widest gap, at most half of them."""
    masses = relevance(network)
    if k is None:
        mass = np.sort(masses.mass)[::-1]
        half = max(1, len(mass) // 2)
        ratios = mass[:half] / np.maximum(mass[1 : half + 1], 1e-300) if len(mass) > 1 else np.ones(1)
        k = int(np.argmax(ratios)) + 1
    return tuple(sorted(masses.largest(k)))


def lucky_neurons(initial: TwoLayer, support: tuple[int, ...]) -> IdArray:
    """Neurons whose large initial weights contain the support or lie in it (pareto, B.2, B.3); none of dense starts."""
    if not support:
        return np.empty(0, dtype=np.int64)
    size = np.abs(initial.hidden)
    large = size > 0.5 * size.max(axis=1, keepdims=True)
    inside = large[:, list(support)].sum(axis=1)
    total = large.sum(axis=1)
    lucky = (inside == len(support)) | ((inside == total) & (total > 0))
    is_sparse = bool((np.sort(size, axis=1)[:, :1] < 0.5 * size.max(axis=1, keepdims=True)).all()) and bool(
        np.all(total == total[0])
    )
    return np.flatnonzero(lucky) if is_sparse else np.empty(0, dtype=np.int64)


def _outputs(network: TwoLayer, signs: SignArray) -> Float64Array:
    """In double precision, so that a row's value does not depend on the rows it is evaluated with."""
    return np.asarray(network.astype(np.float64)(signs), dtype=np.float64)


def _at_least_one_column(signs: SignArray) -> SignArray:
    """A network needs an input; a table whose columns are all constant gets one of +1."""
    return signs if signs.shape[1] else np.ones((len(signs), 1), dtype=np.int8)


@register_adapter(ParityNetwork, described="ParityNetClassifier")
def _adapt(model: Any, X: object, y: object) -> ModelAdapter:
    """The network over all columns; constant ones weigh 0. Columns cut at their median are refused."""
    check_is_fitted(model)
    return ModelAdapter(_joined_signs(model), model.classes_)


def _joined_signs(model: Any) -> Layers:
    signs, active, net = model._sign_map, model.active_, model.network_.astype(np.float64)
    if not np.isnan(signs.cut[active]).all():
        rule = "must take two-valued columns as they are"
        raise invalid(
            "model", rule, f"a {type(model).__name__} with binarize='median'", "a cut has no gradient to follow"
        )
    low, high = (np.asarray(end, dtype=np.float64) for end in (signs.low, signs.high))
    identity = (low == -1) & (high == 1)
    half = np.where(high > low, (high - low) / 2, 1.0)
    scale = np.where(identity, 1.0, -1.0 / half)
    shift = np.where(identity, 0.0, (low + high) / 2 / half)
    if not len(active):  # the one input is the constant +1
        hidden, bias = np.zeros((net.width, len(low))), net.bias + net.hidden[:, 0]
        return Layers.of(net.with_parameters(hidden, bias))
    hidden = np.zeros((net.width, len(low)))
    hidden[:, active] = net.hidden
    return Layers.of(net.with_parameters(hidden)).after(scale, np.where(high > low, shift, 0.0))
