"""`SparseInitClassifier`: wide, sparsely initialised networks for small tables (pareto, sections 4.2 and C.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import column_or_1d

from fewfire._errors import invalid
from fewfire._validate import check_number
from fewfire.learners._classes import find_classes
from fewfire.learners.sparse_init._base import Rows, SparseInitBase
from fewfire.learners.sparse_init._losses import sigmoid, softmax

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.learners.sparse_init._model import Examples
    from fewfire.learners.sparse_init._optimisers import Optimiser


class SparseInitClassifier(ClassifierMixin, SparseInitBase):  # type: ignore[misc]
    """Classify rows of a small table with an ensemble of wide networks that start with few inputs a neuron.

    Scaling, missing values and the weighing of inputs are part of the model: give it raw numbers. Several networks are
    trained side by side, each on three quarters of the rows; the rows each left out say when all of them stop.

    Parameters
    ----------
    hidden : tuple of int
        Widths of one to three hidden layers.
    sparsity : int or None
        Inputs each neuron of the first layer starts with; None is a dense start.
    members : int
        Networks a view (a scaling and a gain). Views are mixed by the weights that predict held-out rows best; beyond
        2000 rows a trial on 2000 of them chooses four views.
    skip : bool
        Whether the inputs also reach the outputs directly, a linear model beside the network.
    scaling : {"auto", "quantile", "bins", "waves", "standard"}
        How columns are shown: normal ranks; by mean and deviation, large values bent, with 16 bins a column beside; the
        same with 16 learned waves; or by mean and deviation alone. "auto" trains on the first three.
    gains : {"auto", "none", "mild", "strong"}
        How much larger inputs are shown that say something about the target by themselves. "auto" trains on all three.
    label_smoothing : float
        Share of a label that training spreads evenly over the classes; held-out rows are judged by the labels.
    optimiser : AdamW, SGD or None
        How to descend: learning rate, weight decay, batch size, epochs. None is AdamW(), or AdamW(epochs=30) where no
        rows are held out to say when to stop.
    early_stopping : "auto", bool or int
        Epochs without a better loss on held-out rows before training stops; True is 20, False trains all epochs on all
        rows. "auto" is True for 20 rows and more, and for any number with `validation_data`.
    class_weight : dict, "balanced" or None
        Weights by class, 1 where not named, that multiply those of the rows; a class of weight 0 is left out of
        training. "balanced" gives every class the same weight in all.
    warm_start : bool
        Continue from the last fit's weights; widths, members, scaling and classes stay. The optimiser's state goes on
        unless another optimiser is given.
    engine : {"auto", "cpu", "torch"}
        "torch" trains on a GPU where there is one; "auto" is "cpu".
    n_jobs : int or None
        Networks trained at a time, one a thread and at most `members`; −1 is one a core. None is one thread in all, as
        matrix products this small gain nothing by more.
    random_state : int, RandomState or None
    verbose : bool
        Tell every epoch on standard error.

    Attributes
    ----------
    classes_ : array
    loss_curve_, validation_curve_ : list of float
        Mean loss of each epoch, in training and on held-out rows.
    n_iter_ : int
        Epochs trained.
    views_ : dict
        Views by name and their weights, those below 1% dropped. Curves and epochs are of the weightiest.
    sharpness_ : float
        What the networks' outputs are multiplied by so that held-out rows are predicted best; 1 if none are held out.
    n_features_in_, feature_names_in_, engine_
    """

    classes_: AnyArray

    def __init__(
        self, hidden: tuple[int, ...] = (256, 64), *, sparsity: int | None = 2, members: int = 4,
        skip: bool = True, scaling: str = "auto", gains: str = "auto", label_smoothing: float = 0.2,
        optimiser: Optimiser | None = None, early_stopping: str | bool | int = "auto",
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False, engine: str = "auto", n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None, verbose: bool = False,
    ) -> None:  # fmt: skip
        self.hidden = hidden
        self.sparsity = sparsity
        self.members = members
        self.skip = skip
        self.scaling = scaling
        self.gains = gains
        self.label_smoothing = label_smoothing
        self.optimiser = optimiser
        self.early_stopping = early_stopping
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Self:
        """One epoch of every network over these rows; the first call needs all `classes` and learns the scaling."""
        first = not hasattr(self, "_model")
        if first and classes is None:
            raise invalid("classes", "must be passed on the first call of partial_fit", None, "pass numpy.unique(y)")
        if self.class_weight == "balanced":
            raise invalid("class_weight", "must not be 'balanced' with partial_fit, which sees part of the rows",
                          "balanced", "pass a dict of weights")  # fmt: skip
        given = None if classes is None else np.unique(np.asarray(classes))
        if not first and given is not None and not np.array_equal(given, self.classes_):
            known = ", ".join(map(str, self.classes_))
            raise invalid("classes", f"must stay {known}, those of the first call", given.tolist(),
                          "leave classes out, or start with a fresh estimator")  # fmt: skip
        return self._partial_fit(X, y, sample_weight, given)

    def decision_function(self, X: object) -> Float64Array:
        """Log odds of `classes_[1]`, shape (rows,), for two classes; otherwise scores (rows, classes)."""
        outputs = self._outputs(X)
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: object) -> Float64Array:
        """Probabilities of the classes, shape (rows, classes)."""
        outputs = self._outputs(X)
        if len(self.classes_) > 2:
            return np.asarray(softmax(outputs))
        upper = sigmoid(outputs)
        return np.hstack([1.0 - upper, upper])

    def predict(self, X: object) -> AnyArray:
        """The likeliest class of every row, shape (rows,)."""
        outputs = self._outputs(X)
        best = outputs.argmax(axis=1) if len(self.classes_) > 2 else (outputs[:, 0] > 0).astype(np.int64)
        return np.asarray(self.classes_[best])

    def _learn_target(self, rows: Rows, classes: AnyArray | None = None) -> None:
        labels = column_or_1d(rows.y, warn=True)
        self.classes_ = find_classes(labels if classes is None else classes)

    def _encode(self, y: AnyArray) -> AnyArray:
        labels = column_or_1d(y)
        places = np.searchsorted(self.classes_, labels)
        known = self.classes_[np.minimum(places, len(self.classes_) - 1)] == labels
        if not known.all():
            names = ", ".join(map(str, self.classes_))
            raise invalid(
                "y", f"may hold only the classes {names}", labels[~known].tolist()[0], "name all classes at the start"
            )
        if len(self.classes_) == 2:
            return np.asarray(places[:, None])
        return np.asarray(np.eye(len(self.classes_))[places])

    def _strata(self, y: AnyArray) -> AnyArray:
        return np.asarray(np.searchsorted(self.classes_, column_or_1d(y)))

    def _class_factors(self, rows: Rows) -> Float64Array | float:
        if self.class_weight is None:
            return 1.0
        places = np.searchsorted(self.classes_, column_or_1d(rows.y))
        if self.class_weight == "balanced":
            mass = np.bincount(places, weights=rows.weight, minlength=len(self.classes_))
            return np.asarray(mass.sum() / (np.count_nonzero(mass) * mass[places]))
        if not isinstance(self.class_weight, dict):
            raise invalid("class_weight", "must be a dict, 'balanced' or None", self.class_weight)
        known = self.classes_.tolist()
        for label, factor in self.class_weight.items():
            # A fold may lack a class that the user did name; a key besides unnamed classes is a slip.
            if label not in known and not set(known) <= set(self.class_weight):
                rule = f"may name only the classes {', '.join(map(repr, known))}"
                raise invalid("class_weight", rule, label, "remove the key; labels and keys must be of one type")
            check_number(f"class_weight[{label!r}]", factor, 0.0)
        factors = np.array([float(self.class_weight.get(label, 1.0)) for label in known])
        return np.asarray(factors[places])

    def _loss(self) -> str:
        return "logistic" if len(self.classes_) == 2 else "cross_entropy"

    def _offset(self, examples: Examples) -> AnyArray:
        share = np.clip(np.average(examples.target, axis=0, weights=examples.weight), 1e-3, 1 - 1e-3)
        return np.asarray(np.log(share / (1 - share)) if len(share) == 1 else np.log(share))
