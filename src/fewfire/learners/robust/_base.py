"""What `RobustClassifier` and `RobustRegressor` share: arguments, scores of new rows, attacks and certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._validate import check_choice, check_number
from fewfire.learners.robust import _both_layers, _first_layer, _settings
from fewfire.learners.robust._domains import DOMAINS
from fewfire.learners.robust._perceptron import formula_of
from fewfire.learners.robust._summary import summary
from fewfire.robustness import (
    LayeredScores,
    ModelAdapter,
    SliceCap,
    TwoLayerScores,
    attack,
    certify,
    register_adapter,
    robust_score,
)
from fewfire.robustness._threats import ball, check_within

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.engines.robust import TrainerMethod
    from fewfire.learners.robust._domains import Domain, InputMap
    from fewfire.learners.robust._losses import LossOfRows
    from fewfire.learners.robust._settings import SettingName
    from fewfire.networks import TwoLayer
    from fewfire.robustness import PGD, AttackResult, Certificate, Threat
    from fewfire.robustness._threats import Norm


class RobustNetwork(BaseEstimator):  # type: ignore[misc]
    """Two-layer networks trained against an adversary."""

    networks_: tuple[TwoLayer, ...]
    setting_: str
    _inputs: InputMap

    def __init__(
        self,
        width: int = 1000,
        activity: float | Literal["auto"] = "auto",
        rho: float = 0.1,
        *,
        norm: Norm = "l2",
        adversary: Literal["pgd", "fgm", "none"] | PGD = "pgd",
        domain: Domain = "ball",
        bounds: Any = None,
        setting: SettingName = "auto",
        method: TrainerMethod = "auto",
        loss: Literal["auto", "logistic", "hinge", "absolute", "huber"] = "auto",
        learning_rate: float | Literal["auto", "theorem", "printed"] = "auto",
        weight_decay: float = 0.3,
        epochs: int = 50,
        batch_size: int | Literal["auto"] = "auto",
        iterations: int | None = None,
        early_stopping: bool | int = False,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.width = width
        self.activity = activity
        self.rho = rho
        self.norm = norm
        self.adversary = adversary
        self.domain = domain
        self.bounds = bounds
        self.setting = setting
        self.method = method
        self.loss = loss
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.batch_size = batch_size
        self.iterations = iterations
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _threat(self, dimensions: int) -> Threat:
        """The set the adversary moves points of that many dimensions in."""
        rho = check_number("rho", self.rho, 0.0)
        if check_choice("domain", self.domain, DOMAINS) == "ball":
            return ball(self.norm, rho, self.bounds, dimensions)
        if self.norm != "l2":
            raise invalid("norm", f"must be 'l2' in domain={self.domain!r}", self.norm)
        if self.bounds is not None:
            raise invalid("bounds", 'can be given in domain="ball" only', self.bounds, "leave it out")
        return SliceCap(rho)

    def _threat_instead(self, rho: float | None, norm: Norm | None, bounds: Any) -> Threat:
        """The adversary that is asked for; what is None stays the model's own."""
        radius = check_number("rho", self.rho if rho is None else rho, 0.0)
        if self.domain == "ball":
            return ball(norm or self.norm, radius, self.bounds if bounds is None else bounds, self._inputs.columns)
        if norm not in (None, "l2") or bounds is not None:
            got = norm if bounds is None else bounds
            raise invalid("norm and bounds", f"must be left out for domain={self.domain!r}", got)
        return SliceCap(radius)

    def _continues(self) -> bool:
        """Whether a fit goes on from the network of the last one."""
        return bool(self.warm_start and hasattr(self, "networks_") and self.setting_ == "practical")

    def _weighed(self, table: Float64Array, labels: AnyArray, weight: Float64Array) -> Any:
        """Rows of weight above 0, and their weights brought to mean 1."""
        weight = weight / (weight.max() or 1.0)
        kept = weight > np.finfo(np.float32).tiny
        if not kept.any():
            raise invalid("class_weight", "must leave some row a weight above 0", "none that does")
        return table[kept], labels[kept], weight[kept] / weight[kept].mean()

    def _train(
        self, X: Float64Array, heads: int, losses: LossOfRows, weight: Float64Array, continued: bool | None
    ) -> None:
        """Fit networks of `heads` scores to a checked table (rows, columns), and set the fitted attributes.

        Parameters
        ----------
        continued : bool or None
            Whether to go on from the network of the last fit; None is one epoch more.
        """
        self.setting_ = _settings.resolve(self)
        threat = self._threat(X.shape[1])
        check_within(X, threat)
        if self.setting_ != "practical":
            _first_layer.fit(self, X, threat, heads, losses, weight)
        elif continued is None:
            _both_layers.continue_once(self, X, threat, heads, losses, weight)
        else:
            _both_layers.fit(self, X, threat, heads, losses, weight, continued)

    def _scores(self, X: object) -> Float64Array:
        """Scores of every row, shape (rows, heads)."""
        check_is_fitted(self)
        table = validate_data(self, X, reset=False, dtype=np.float64)
        return self.heads().scores(self._inputs.points(table))

    def heads(self) -> LayeredScores | TwoLayerScores:
        """The fitted networks as functions of points: of the rows themselves, or of the slice in domain "projected"."""
        check_is_fitted(self)
        if self.setting_ == "practical":
            return formula_of(self.networks_[0])
        return TwoLayerScores(tuple(self._inputs.on_points(net) for net in self.networks_))

    def attack(self, X: object, y: object, **options: Any) -> AttackResult:
        """The worst points near the rows of X; options as in `fewfire.attack`, the model's own adversary by default."""
        return attack(self, X, y, **options)

    def robust_score(self, X: object, y: object, **options: Any) -> float:
        """Accuracy or R² at the points that `attack` finds."""
        return robust_score(self, X, y, **options)

    def certify(self, X: object, y: object, **options: Any) -> Certificate:
        """Proved lower bounds on the margin; options as in `fewfire.certify`."""
        return certify(self, X, y, **options)

    def explain(self) -> str:
        """What was trained, what it reached and what it cost, in a few lines."""
        check_is_fitted(self)
        return summary(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")


@register_adapter(RobustNetwork, described="RobustClassifier, RobustRegressor")
def _adapter(model: Any, X: object, y: object) -> ModelAdapter:
    """The networks as functions of points, and the model's own adversary unless another is asked for."""
    heads = model.heads()
    space = None if model.domain == "ball" else model._inputs
    return ModelAdapter(heads, getattr(model, "classes_", None), space, model._threat_instead)
