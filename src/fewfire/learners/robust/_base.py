"""What `RobustClassifier` and `RobustRegressor` share: arguments, the training, scores of new rows, a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.engines.robust import TRAINERS, trainer
from fewfire.learners.robust import _settings
from fewfire.learners.robust._blas import calm_products
from fewfire.learners.robust._caps import SliceCap
from fewfire.learners.robust._heads import Heads
from fewfire.learners.robust._inputs import DOMAINS, Inputs
from fewfire.learners.robust._search import check_adversary
from fewfire.learners.robust._summary import Progress, summary
from fewfire.learners.robust._threats import Threat, ball, check_within
from fewfire.learners.robust._training import Plan, train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array
    from fewfire.engines.robust import ActiveTrainer
    from fewfire.learners.robust._attack import AttackResult
    from fewfire.learners.robust._certify import Certificate
    from fewfire.learners.robust._criteria import Criterion
    from fewfire.networks import TwoLayer

METHODS = ("auto", *TRAINERS)


class RobustNetwork(BaseEstimator):  # type: ignore[misc]
    """Two-layer networks with a shifted ReLU, trained against an adversary; only the first layer moves."""

    def __init__(
        self,
        width: int = 1000,
        activity: float | str = "auto",
        rho: float = 0.1,
        *,
        norm: str = "l2",
        adversary: Any = "pgd",
        domain: str = "ball",
        bounds: Any = None,
        setting: str = "practical",
        method: str = "auto",
        loss: str = "auto",
        learning_rate: float | str = "auto",
        max_iter: int = 200,
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
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def threat(self, dimensions: int) -> Threat:
        """The set the adversary moves points of that many dimensions in."""
        rho = check_number("rho", self.rho, 0.0)
        if check_choice("domain", self.domain, DOMAINS) == "ball":
            return ball(self.norm, rho, self.bounds, dimensions)
        if self.norm != "l2":
            raise invalid("norm", f"must be 'l2' in domain={self.domain!r}", self.norm)
        if self.bounds is not None:
            raise invalid("bounds", 'can be given in domain="ball" only', self.bounds, "leave it out")
        return SliceCap(rho)

    def _train(self, X: Float64Array, heads: int, loss: str, criteria: tuple[Criterion, Criterion]) -> None:
        """Fit `heads` networks to the criteria on a validated table (rows, columns), then set the fitted attributes."""
        iterations = check_integer("max_iter", self.max_iter, 1)
        threat = self.threat(X.shape[1])
        check_within(X, threat)
        search = check_adversary(self.adversary)
        check_choice("method", self.method, METHODS)
        inputs = Inputs.learn(self.domain, X)
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
        progress = Progress(iterations) if self.verbose else None
        plan = Plan(*criteria, threat, search, rate, iterations, Stream(key, "attack"), progress)
        with calm_products(len(points) * width * embedded.shape[1]):
            networks, history = train(trainers, inputs, points, plan)
        self._set(inputs, networks, starts, trainers)
        self.history_, self.learning_rate_, self.n_iter_ = history, rate, len(history)
        self._constant_loss = float(criteria[0].value(np.zeros((len(points), heads))).mean())

    def _set(
        self,
        inputs: Inputs,
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

    def heads(self) -> Heads:
        """The fitted networks as functions of points: of the rows themselves, or of the slice in domain "projected"."""
        check_is_fitted(self)
        return Heads(tuple(self._inputs.on_points(net) for net in self.networks_))

    def attack(self, X: object, y: object, **options: Any) -> AttackResult:
        """The worst points near the rows of X; options as in `fewfire.attack`, the model's own adversary by default."""
        from fewfire.learners.robust._attack import attack  # knows every kind of model, so it imports this module

        return attack(self, X, y, **options)

    def robust_score(self, X: object, y: object, **options: Any) -> float:
        """Accuracy or R² at the points that `attack` finds."""
        from fewfire.learners.robust._attack import robust_score

        return robust_score(self, X, y, **options)

    def certify(self, X: object, y: object, **options: Any) -> Certificate:
        """Proved lower bounds on the margin; options as in `fewfire.certify`."""
        from fewfire.learners.robust._certify import certify

        return certify(self, X, y, **options)

    def explain(self) -> str:
        """What was trained, what it reached and what it cost, in a few lines."""
        check_is_fitted(self)
        return summary(self)
