"""`ParityNetClassifier`: the papers' ways of learning a sparse parity with a two-layer network, as one estimator.

The schedules are in `_schedules.py`. Here too is how a trained network is read: which inputs it uses, and which neurons
were lucky from the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._classes import two_classes
from fewfire._progress import told
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.engines import get_engine
from fewfire.learners._calibration import logistic_slope, two_probabilities
from fewfire.learners._fitting import all_or_nothing
from fewfire.learners._signs import Binarize, column_names, learn_signs
from fewfire.learners.parity_net._proof import good_mask
from fewfire.learners.parity_net._schedules import (
    InitName,
    TrainingTask,
    train_correlated,
    train_over_sparse,
    train_sgd,
    train_under_sparse,
)
from fewfire.networks import TwoLayer, relevance

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, IdArray, SignArray
    from fewfire.engines import LossName
    from fewfire.learners.parity_net._correlated import LearningRate
    from fewfire.learners.parity_net._first_step import StepMethod
    from fewfire.learners.parity_net._second_layer import SecondLayer


ScheduleName: TypeAlias = Literal["sgd", "over_sparse", "under_sparse", "correlated"]

SCHEDULES = {
    "sgd": train_sgd,
    "over_sparse": train_over_sparse,
    "under_sparse": train_under_sparse,
    "correlated": train_correlated,
}


RATES_AND_DECAYS = {"sgd": (0.1, 0.01), "correlated": (0.5, 0.0)}
"""What a learning rate and a weight decay of None are. The other schedules have their own rates and use neither."""


class ParityNetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learn a sparse parity (or another Boolean function of few bits) with a two-layer network.

    Columns of ±1 are taken as they are; in any other column with two values the smaller becomes +1 and the larger −1.
    Constant columns are ignored; columns with more values are refused unless `binarize="median"`.

    Parameters
    ----------
    schedule : {"sgd", "over_sparse", "under_sparse", "correlated"}
        "sgd": plain minibatch SGD (pareto C.1), the practical one. The others carry out pareto Theorem 4/16,
        pareto Theorem 5/21 and parities Theorem 2; they need `k`.
    width : int
        Hidden neurons; even for the theorems' schedules.
    init : {"sparse", "dense"}
        Start of "sgd": `sparsity` non-zero weights per neuron, or PyTorch's default.
    sparsity : int
        Non-zero (large) weights a neuron starts with.
    loss, learning_rate, weight_decay, batch_size, max_steps
        Of "sgd". "over_sparse" and "under_sparse" set their own rates; `max_steps` is then the length of
        `second_layer="descent"`. Under "correlated" descent goes on for `max_steps` after the first step, at rates that
        fall from `learning_rate` to 0; "theorem" gives Theorem 2's own, which is constant, and too small for networks
        that can be run. Half of `weight_decay` is its λ, at most k/n. None stands for a rate of 0.1 and a decay of 0.01
        under "sgd", and for 0.5 and 0 under "correlated": a parity needs large outputs, which a λ of 0.005 does not let
        grow, and smaller rates stay at the best half-space more often.
    k : int, optional
        Bits of the parity.
    second_layer : {"solver", "descent"}
        For the theorems' schedules: solve the convex second layer, or descend as they state, on the second layer
        (pareto) or on both (parities, where the iterate with the least held-out error is kept). Under "correlated" the
        solver sees the `k` inputs that the first step has singled out, and no others.
    method : {"practical", "theorem"}
        Of "over_sparse" and "under_sparse". "practical" zeroes gradients below the middle between those on and off the
        support. "theorem" does what the proofs do: Theorem 16 truncates nothing, and its "descent" is Lemma 14's, on
        the whole sample with λ = `epsilon`/B_k²; Theorem 21 truncates at the gradient off the support.
    epsilon : float in (0, 1/2)
        The loss that Lemma 14 aims at.
    strict : bool
        Refuse what the theorem excludes. Without, anything is carried out for which the first step has a gradient:
        under-sparse starts also at s = k and above, or with an even number of other columns; k is even throughout.
    restarts : int
        Under "correlated" with "descent": how often at most training begins again, with other weights and minibatches
        decided by `random_state`, where the best iterate is no better than a half-space. If none of the starts leaves
        it, the best is kept and a `ConvergenceWarning` says so.
    validation_fraction : float
        Share held out by "sgd", which then stops as soon as that part is without error; 0 trains all `max_steps`.
        Under "correlated" with "descent" the iterate is chosen on it, or on the first 10,000 training rows where it is
        0; training ends where none of them is wrong.
        `predict_proba` is fitted on it, or on the training rows where it is 0, of which it is then too sure.
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
        Neurons whose initial large weights contain `support_` or lie inside it; none for a dense start. Under
        "correlated" the good neurons of parities, Lemma 7, whose initial weights on `support_` add up to 0.
    best_step_ : int
        The step whose weights `network_` has: the last one, except under "correlated" with "descent".
    learning_rate_, weight_decay_ : float or "theorem", float
        What the parameters stand for; None is 0 for schedules that set their own.
    restarts_ : int
        Restarts that were made.
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

    def __init__(
        self,
        schedule: ScheduleName = "sgd",
        *,
        width: int = 1000,
        init: InitName = "sparse",
        sparsity: int = 2,
        loss: LossName = "hinge",
        learning_rate: LearningRate | None = None,
        weight_decay: float | None = None,
        batch_size: int | None = 32,
        max_steps: int = 100_000,
        k: int | None = None,
        second_layer: SecondLayer = "solver",
        method: StepMethod = "practical",
        epsilon: float = 0.1,
        strict: bool = True,
        restarts: int = 3,
        validation_fraction: float = 0.0,
        binarize: Binarize | None = None,
        engine: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.schedule = schedule
        self.width = width
        self.init = init
        self.sparsity = sparsity
        self.loss = loss
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.k = k
        self.second_layer = second_layer
        self.method = method
        self.epsilon = epsilon
        self.strict = strict
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.binarize = binarize
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: object, y: object) -> Self:
        """Fit to a table of binary columns (samples, columns) and labels of two classes (samples,)."""
        check_choice("schedule", self.schedule, SCHEDULES)
        table, labels = validate_data(self, X, y)
        classes, signs_of_labels = two_classes(labels)
        sign_map = learn_signs(table, column_names(self), self.binarize)
        task = self._task(sign_map.transform(table), signs_of_labels)
        outcome = SCHEDULES[self.schedule](task)
        self._sign_map = sign_map
        self.classes_, self.mapping_, self.active_ = classes, sign_map.mapping, sign_map.active
        self.network_, self.initial_network_ = outcome.network, outcome.initial
        self.history_, self.engine_ = outcome.result.history, outcome.result.engine
        self.n_iter_, self.restarts_ = outcome.result.counters.steps, outcome.restarts
        self.learning_rate_, self.weight_decay_ = task.learning_rate, task.weight_decay
        rows, signs = (task.X, task.y) if task.X_held is None or task.y_held is None else (task.X_held, task.y_held)
        self.slope_ = logistic_slope(_outputs(outcome.network, rows), signs)
        self.best_step_ = self.n_iter_ if outcome.step is None else outcome.step
        # Without a column that varies, the network has looked at a made-up one.
        found = find_support(outcome.network, self.k) if len(self.active_) else ()
        if self.schedule == "correlated" and found:
            self.lucky_neurons_ = np.flatnonzero(good_mask(outcome.initial, found))
        else:
            self.lucky_neurons_ = lucky_neurons(outcome.initial, found)
        self.support_ = tuple(int(self.active_[column]) for column in found)
        return self

    def decision_function(self, X: object) -> Float64Array:
        """The network's output at every row, shape (samples,): positive for `classes_[1]`."""
        check_is_fitted(self)
        signs = self._sign_map.transform(validate_data(self, X, reset=False))
        return _outputs(self.network_, _at_least_one_column(signs))

    def predict(self, X: object) -> AnyArray:
        """The class of every row, shape (samples,)."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(np.int64)])

    def predict_proba(self, X: object) -> Float64Array:
        """The probability of each class, shape (samples, 2): a logistic function of the network's output."""
        values = self.decision_function(X)
        return two_probabilities(self.slope_, values)

    def explain(self) -> str:
        """How the network was trained, which columns it uses and how many neurons were lucky, in three lines."""
        check_is_fitted(self)
        kept = "" if self.best_step_ == self.n_iter_ else f", the weights of step {self.best_step_}"
        lines = [f"{self.schedule}: {self.network_.width} neurons, {self.n_iter_} steps by {self.engine_}{kept}"]
        mass, places = relevance(self.network_).mass, {column: i for i, column in enumerate(self.active_.tolist())}
        names = [str(self._sign_map.names[column]) for column in self.support_]
        share = float(mass[[places[column] for column in self.support_]].sum() / max(mass.sum(), 1e-300))
        told = f"{share:.1%} of the weight: {', '.join(names)}" if names else "no weight: none varies"
        lines.append(f"{len(names)} of {self.n_features_in_} columns hold {told}")
        return "\n".join([*lines, f"{len(self.lucky_neurons_)} neurons were lucky from the start"])

    def _task(self, X: SignArray, y: Float64Array) -> TrainingTask:
        random = check_random_state(self.random_state)
        share = check_number("validation_fraction", self.validation_fraction, 0.0, 1.0, open_high=True)
        rate, decay = RATES_AND_DECAYS.get(self.schedule, (0.0, 0.0))
        X = _at_least_one_column(X)
        X_held = y_held = None
        if share > 0:
            X, X_held, y, y_held = train_test_split(X, y, test_size=share, random_state=random)
        return TrainingTask(
            X,
            y,
            X_held,
            y_held,
            width=check_integer("width", self.width, 1),
            sparsity=min(check_integer("sparsity", self.sparsity, 1), X.shape[1]),
            k=None if self.k is None else check_integer("k", self.k, 1),
            loss=self.loss,
            learning_rate=rate if self.learning_rate is None else self.learning_rate,
            weight_decay=decay if self.weight_decay is None else self.weight_decay,
            batch_size=self.batch_size,
            max_steps=check_integer("max_steps", self.max_steps, 1),
            second_layer=self.second_layer,
            method=self.method,
            epsilon=check_number("epsilon", self.epsilon, 0.0, 0.5, open_low=True, open_high=True),
            start=self.init,
            strict=self.strict,
            restarts=check_integer("restarts", self.restarts, 0),
            seed=int(random.randint(2**31 - 1)),
            engine=get_engine(self.engine),
            progress=told(bool(self.verbose), "training"),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Cutting continuous columns in two loses most of what the standard data sets say.
        tags.classifier_tags.poor_score = self.binarize is not None
        return tags


def find_support(network: TwoLayer, k: int | None) -> tuple[int, ...]:
    """The inputs that carry the weight mass: the k heaviest, or those above the widest gap in ratio.

    The gap is looked for in the upper half of the sorted masses, so at most half of the inputs are named.
    """
    masses = relevance(network)
    if k is None:
        mass = np.sort(masses.mass)[::-1]
        half = max(1, len(mass) // 2)
        ratios = mass[:half] / np.maximum(mass[1 : half + 1], 1e-300) if len(mass) > 1 else np.ones(1)
        k = int(np.argmax(ratios)) + 1
    return tuple(sorted(masses.largest(k)))


def lucky_neurons(initial: TwoLayer, support: tuple[int, ...]) -> IdArray:
    """Neurons whose initial large weights contain the support, or are contained in it (pareto, B.2 and B.3).

    Large are weights above half of the row's largest. Dense starts have no such sets, and no lucky neurons; nor has an
    empty support.
    """
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
