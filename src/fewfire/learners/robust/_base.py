"""What `RobustClassifier` and `RobustRegressor` share: arguments, the training, scores of new rows, a summary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._blas import calm_products
from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.engines.robust import TrainerMethod, trainer
from fewfire.learners.robust import _settings
from fewfire.learners.robust._domains import DOMAINS, InputMap
from fewfire.learners.robust._training import TrainingPlan, train
from fewfire.robustness import (
    ModelAdapter,
    SliceCap,
    TwoLayerScores,
    attack,
    certify,
    register_adapter,
    robust_score,
)
from fewfire.robustness._search import check_adversary
from fewfire.robustness._threats import ball, check_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array
    from fewfire.engines.robust import ActiveTrainer
    from fewfire.learners.robust._domains import Domain
    from fewfire.learners.robust._settings import SettingName
    from fewfire.networks import TwoLayer
    from fewfire.robustness import PGD, AttackResult, Certificate, Criterion, Threat
    from fewfire.robustness._threats import Norm


class RobustNetwork(BaseEstimator):  # type: ignore[misc]
    """Two-layer networks with a shifted ReLU, trained against an adversary; only the first layer moves."""

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
        setting: SettingName = "practical",
        method: TrainerMethod = "auto",
        loss: Literal["auto", "logistic", "hinge", "absolute", "huber"] = "auto",
        learning_rate: float | Literal["auto", "theorem", "printed"] = "auto",
        iterations: int = 200,
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
        self.iterations = iterations
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

    def _train(self, X: Float64Array, heads: int, loss: str, criteria: tuple[Criterion, Criterion]) -> None:
        """Fit `heads` networks to the criteria on a validated table (rows, columns), then set the fitted attributes."""
        iterations = check_integer("iterations", self.iterations, 1)
        threat = self._threat(X.shape[1])
        check_within(X, threat)
        search = check_adversary(self.adversary)
        check_choice("method", self.method, get_args(TrainerMethod))
        inputs = InputMap.learn(self.domain, X)
        points = inputs.points(X)
        embedded = inputs.embed(points)
        key = int(check_random_state(self.random_state).randint(2**31 - 1))
        draw = _settings.start(check_choice("setting", self.setting, _settings.SETTINGS), self.activity)
        width, streams = check_integer("width", self.width, 1), Stream(key, "init")
        starts = [draw(embedded.shape[1], width, streams.child(f"head {head}")) for head in range(heads)]
        rate = _settings.learning_rate(self.learning_rate, self.setting, loss, starts, embedded, iterations)
        # Inputs are float32 and so may lie a rounding further out than the threat allows.
        reach = 1e-6 + inputs.reach(threat.reach(points.shape[1])) * (1 + 1e-6) if search.steps else 1e-6
        table = np.ascontiguousarray(embedded, dtype=np.float32)
        trainers = [trainer(self.method, net, table, reach) for net in starts]
        progress = TrainingProgress(iterations) if self.verbose else None
        plan = TrainingPlan(*criteria, threat, search, rate, iterations, Stream(key, "attack"), progress)
        with calm_products(len(points) * width * embedded.shape[1]):
            networks, history = train(trainers, inputs, points, plan)
        self._set(inputs, networks, starts, trainers)
        self.history_, self.learning_rate_, self.n_iter_ = history, rate, len(history)
        self._constant_loss = float(criteria[0].value(np.zeros((len(points), heads))).mean())

    def _set(
        self,
        inputs: InputMap,
        networks: Sequence[TwoLayer],
        starts: Sequence[TwoLayer],
        trainers: Sequence[ActiveTrainer],
    ) -> None:
        self._inputs, self.networks_ = inputs, tuple(networks)
        self.method_ = trainers[0].name
        moved = zip(networks, starts, strict=True)
        self.drift_ = max(float(np.linalg.norm(new.hidden - old.hidden, axis=1).max()) for new, old in moved)

    def _scores(self, X: object) -> Float64Array:
        """Scores of every row, shape (rows, heads)."""
        check_is_fitted(self)
        table = validate_data(self, X, reset=False, dtype=np.float64)
        return self.heads().scores(self._inputs.points(table))

    def heads(self) -> TwoLayerScores:
        """The fitted networks as functions of points: of the rows themselves, or of the slice in domain "projected"."""
        check_is_fitted(self)
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
        return _summary(self)


@register_adapter(RobustNetwork, described="RobustClassifier, RobustRegressor")
def _adapter(model: Any, X: object, y: object) -> ModelAdapter:
    """The networks as functions of points, and the model's own adversary unless another is asked for."""
    heads = model.heads()
    space = None if model.domain == "ball" else model._inputs
    return ModelAdapter(heads, getattr(model, "classes_", None), space, model._threat_instead)


class TrainingProgress:
    """Tells about twenty times on standard error how far a training is."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations

    def __call__(self, done: int, robust: float, clean: float) -> None:
        if done % max(1, self.iterations // 20) == 0 or done == self.iterations:
            text = f"training: iteration {done} of {self.iterations}, robust loss {robust:.4g}, clean loss {clean:.4g}"
            print(text, file=sys.stderr)


def _summary(model: RobustNetwork) -> str:
    """What was trained, what it reached and what it cost."""
    history, networks = model.history_, model.networks_
    many = f"{len(networks)} networks" if len(networks) > 1 else "one network"
    done, dense = history.multiply_adds.sum(), history.dense_multiply_adds.sum()
    robust, clean = ((losses[0], losses[-1]) for losses in (history.robust_loss, history.clean_loss))
    lines = [
        f"{many} of {networks[0].width} neurons, {networks[0].activation}, method {model.method_}",
        f"adversary: rho {model.rho:g} ({model.norm}, {model.domain}), {check_adversary(model.adversary)}",
        f"robust loss {robust[0]:.4g} -> {robust[1]:.4g}, clean loss {clean[0]:.4g} -> {clean[1]:.4g} "
        f"in {model.n_iter_} iterations of rate {model.learning_rate_:.4g}",
        f"active neurons per example: mean {history.mean_active[-1]:.1f}, largest {history.max_active[-1]:.0f}",
        f"weights moved by at most {model.drift_:.4g}; {done / dense:.1%} of the dense multiply-adds done",
    ]
    if robust[1] > 0.95 * model._constant_loss:
        lines.append("hardly better than a constant: lower rho, or raise width or iterations")
    return "\n".join(lines)
