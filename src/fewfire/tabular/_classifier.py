"""`TabularClassifier`: an ensemble of networks and trees for small tables (pareto, sections 4.2 and C.3)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import column_or_1d

from fewfire._dense.losses import TabularLoss
from fewfire._dense.network import Rows
from fewfire._errors import invalid
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import check_number, class_indices, find_classes, is_balanced, refuse_mixed
from fewfire.tabular._base import TabularBase


@dataclass(eq=False, repr=False)
class TabularClassifier(ClassifierMixin, TabularBase):  # type: ignore[misc]
    """Classify rows of a small table with an ensemble of networks, which start with few inputs per neuron, and trees.

    Scaling, missing values and the weighing of inputs are part of the model: give it raw numbers. Several networks are
    trained together, each on three quarters of the rows; by the rows each left out all of them stop early. Networks
    that were stopped so then anneal: a few more epochs, on all rows, at a learning rate that falls to zero.

    Parameters
    ----------
    hidden : tuple of int
        Widths of one to three hidden layers.
    sparsity : int or None
        Inputs each neuron of the first layer starts with; None is a dense start.
    members : int
        Networks per variant of the inputs (an encoding and a gain). Variants are mixed by the weights that predict
        held-out rows best; beyond 2000 rows a trial on 2000 of them chooses four variants.
    skip : bool
        Whether the inputs also reach the outputs directly, a linear model added to the network.
    scaling : "auto" or a key of `fewfire.tabular.ENCODINGS`
        How columns are shown. "rank": normal quantiles of ranks. "piecewise_linear": by mean and deviation, smoothly
        clipped, and a piecewise-linear encoding in 16 bins. "periodic": the same with a learned periodic embedding
        instead of the bins. "standard": by mean and deviation alone. "auto" trains on the first three.
    gains : {"auto", "none", "mild", "strong"}
        Relevance gains: how much larger those inputs are shown that explain some of the target by themselves. "auto"
        trains on all three.
    label_smoothing : float
        Share of a label that training spreads over the classes by their frequencies in the training rows, weights
        included; validation is by the labels.
    trees : bool
        Whether trees are mixed with the networks. They are fitted where rows are held out, and mixed by the share that
        predicts these best, drawn towards a half.
    categorical_features : "auto", None or list
        Columns of categories, by index, name or mask. "auto" are those of text and of categorical types in data frames
        of pandas and polars, which a list need not repeat; None are none.
    optimiser : AdamW, SGD or None
        How to descend: learning rate, weight decay, batch size, epochs. None is AdamW(), or AdamW(epochs=30) where no
        rows are held out to stop by.
    early_stopping : "auto", bool or int
        Epochs without a better loss on held-out rows before training stops; True is 8, or 6 where rows are more than
        2000, False trains all epochs on all rows. "auto" is True for 20 rows and more, and for any number with
        `validation_data`.
    class_weight : dict, "balanced" or None
        Weights by class, 1 where not named, that multiply those of the rows; a class of weight 0 is left out of
        training. "balanced" gives every class the same weight in all.
    warm_start : bool
        Continue from the last fit's weights, as they were before annealing; widths, members, scaling and classes
        stay. The optimiser's state goes on unless another optimiser is given. Rows that earlier training has seen look
        too good; pass `validation_data` where they come in another order, or after `partial_fit`,
        `early_stopping=False` or a fit without `warm_start`, of which only what predicts is kept.
    device : {"cpu", "cuda"}
        "cuda" trains all networks as one batch on an NVIDIA GPU (extra `cuda13` or `cuda12`); trees and predictions
        stay on the processor.
    n_jobs : int or None
        Networks trained at a time, of any variant, one per thread; −1 is one per core, None is one. The fit is the
        same for every number.
    random_state : int, RandomState or None
    verbose : bool or int
        True shows a bar, on standard error or in a notebook: what is trained, best held-out loss, time left; 2 logs
        every epoch instead.

    Attributes
    ----------
    classes_ : array
    loss_curve_, validation_curve_ : list of float
        Mean loss of each epoch before annealing, in training and on held-out rows.
    n_iter_ : int
        Epochs trained before annealing.
    mixing_weights_ : dict
        Weights by name of the variants, such as "rank, mild gains", and of "random forest" and "boosting"; variants
        below 3% of the networks are dropped. Curves and epochs are of the weightiest variant.
    temperature_ : float
        What the distance of the networks' outputs from those of the class frequencies is divided by so that held-out
        rows are predicted best; 1 if none are held out.
    feature_importances_ : array (columns,)
        Importances that `explain` finds on up to 200 training rows, which are kept: shares of 1, computed when read.
    n_features_in_, feature_names_in_, device_

    Examples
    --------
    >>> import fewfire as ff
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ff.TabularClassifier(scaling="rank", members=2, random_state=0).fit(X[::3], y[::3])
    >>> model.score(X[1::3], y[1::3]) > 0.9
    True
    >>> model.predict_proba(X[:1]).shape
    (1, 3)
    """

    _: KW_ONLY
    label_smoothing: float = 0.2
    class_weight: dict[Any, float] | Literal["balanced"] | None = None

    def partial_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Self:
        """One epoch of every network over these rows; the first call needs all `classes` and learns the scaling.

        Columns that do not vary in the first call are not used later either.
        """
        first = not hasattr(self, "_ensemble")
        if first and classes is None:
            raise invalid("classes", "must be passed on the first call of partial_fit", None, "pass numpy.unique(y)")
        if is_balanced(self.class_weight):
            rule = "must not be 'balanced' with partial_fit, which sees part of the rows"
            raise invalid("class_weight", rule, "balanced", "pass a dict of weights")
        refuse_mixed(classes, "classes")
        given = None if classes is None else find_classes(np.ravel(np.asarray(classes)), "classes")
        if not first and given is not None and not np.array_equal(given, self.classes_):
            rule = f"must stay {', '.join(map(str, self.classes_))}, those of the first call"
            raise invalid("classes", rule, given.tolist(), "leave classes out, or start with a fresh estimator")
        return self._partial_fit(X, y, sample_weight, given)

    def decision_function(self, X: object) -> Float64Array:
        """Log odds of `classes_[1]`, shape (rows,), for two classes; otherwise scores (rows, classes)."""
        outputs = self._outputs(X)
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: object) -> Float64Array:
        """Probabilities of the classes, shape (rows, classes)."""
        return self._decoded(self._outputs(X))

    def predict(self, X: object) -> AnyArray:
        """The likeliest class of every row, shape (rows,)."""
        outputs = self._outputs(X)
        best = outputs.argmax(axis=1) if len(self.classes_) > 2 else (outputs[:, 0] > 0).astype(np.int64)
        return np.asarray(self.classes_[best])

    def _refuse_targets(self, y: object) -> None:
        refuse_mixed(y)

    def _learn_target(self, rows: Rows, classes: AnyArray | None = None) -> None:
        labels = column_or_1d(rows.target, warn=True)
        self.classes_ = find_classes(labels) if classes is None else classes

    def _encode(self, y: AnyArray) -> AnyArray:
        indices = self._indices(y)
        if len(self.classes_) == 2:
            return np.asarray(indices[:, None])
        return np.asarray(np.eye(len(self.classes_))[indices])

    def _decoded(self, outputs: Float64Array) -> Float64Array:
        if len(self.classes_) > 2:
            return np.asarray(softmax(outputs, axis=1))
        upper = expit(outputs)
        return np.hstack([1.0 - upper, upper])

    def _described_target(self, y: AnyArray) -> Float64Array:
        return np.asarray(np.eye(len(self.classes_))[self._indices(y)])

    def _strata(self, y: AnyArray) -> AnyArray:
        return self._indices(y)

    def _indices(self, y: AnyArray) -> AnyArray:
        remedy = "leave rows of other classes out, or start afresh with all classes"
        return class_indices(column_or_1d(y), self.classes_, remedy)

    def _class_factors(self, rows: Rows) -> Float64Array | float:
        if self.class_weight is None:
            return 1.0
        indices = self._indices(rows.target)
        if is_balanced(self.class_weight):
            mass = np.bincount(indices, weights=rows.weight, minlength=len(self.classes_))
            return np.asarray(mass.sum() / (np.count_nonzero(mass) * mass[indices]))
        if not isinstance(self.class_weight, dict):
            raise invalid("class_weight", "must be a dict, 'balanced' or None", self.class_weight)
        known = self.classes_.tolist()
        for label, factor in self.class_weight.items():
            # A fold may lack a class that the user did name; a key next to unnamed classes is a slip.
            if label not in known and not set(known) <= set(self.class_weight):
                rule = f"may name only the classes {', '.join(map(repr, known))}"
                raise invalid("class_weight", rule, label, "remove the key; labels and keys must be of one type")
            check_number(f"class_weight[{label!r}]", factor, 0.0)
        factors = np.array([float(self.class_weight.get(label, 1.0)) for label in known])
        return np.asarray(factors[indices])

    def _loss(self) -> TabularLoss:
        return "logistic" if len(self.classes_) == 2 else "cross_entropy"

    def _offset(self, targets: Rows) -> AnyArray:
        share = np.clip(np.average(targets.target, axis=0, weights=targets.weight), 1e-3, 1 - 1e-3)
        return np.asarray(np.log(share / (1 - share)) if len(share) == 1 else np.log(share))
