"""What both estimators share: parameters, columns to inputs, the choice of the decay, the network and its summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._blas import calm_products
from fewfire._errors import invalid
from fewfire._progress import told
from fewfire._random import Stream
from fewfire._validate import check_integer, check_number
from fewfire.learners._signs import column_names
from fewfire.learners.sparse_activation._training import TrainingRule, train_members
from fewfire.networks import Norms, TwoLayer, check_sparsity

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.learners.sparse_activation._losses import MemberLoss
    from fewfire.learners.sparse_activation._stack import MemberStack

DECAYS = (0.0, 0.03, 0.1, 0.3)
"""What weight_decay="auto" chooses from."""

DECAY, FEWEST = 0.1, 20
"""The weight decay where there are fewer rows than it takes to hold some out."""


class SparseActivationBase(BaseEstimator):  # type: ignore[misc]
    """A network of H(n, s, k); see `SparseActivationRegressor` for parameters and attributes."""

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
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.width = width
        self.k = k
        self.W = W
        self.B = B
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.steps = steps
        self.batch_size = batch_size
        self.price = price
        self.margin = margin
        self.fit_intercept = fit_intercept
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def explain(self, top: int = 5) -> str:
        """What was fitted, how many neurons fire, and the `top` neurons that carry most, as text."""
        check_is_fitted(self)
        return _summary(self, check_integer("top", top, 0))

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
        """Train on a validated table (rows, columns) with positive weights (rows,), then set the fitted attributes.

        `loss_of` gives the loss of some rows, of scores that become outputs as centre + unit · score.
        """
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
            if given is None:
                given, scores = self._chosen(x, weights, loss_of, rule, share, random, stream)
            everyone = np.arange(len(x))
            stack = train_members(x, loss_of(everyone), weights / weights.mean(), [given], rule, stream, self._progress)
        trained = stack.network(0)
        own = trained.norms()
        self.norms_ = Norms(own.W * unit, own.B * unit)
        self.network_ = inputs.on_columns(trained, centre, unit)
        self.sparsity_ = check_sparsity(self.network_, rule.k, X=table)
        self._firing = self.network_.activity(table).per_neuron / len(table)
        self.weight_decay_, self.decay_scores_ = given, scores
        self.n_iter_ = rule.steps

    def _chosen(
        self,
        x: AnyArray,
        weights: Float64Array,
        loss_of: Callable[[IdArray], MemberLoss],
        rule: TrainingRule,
        share: float,
        random: np.random.RandomState,
        stream: Stream,
    ) -> tuple[float, dict[float, float]]:
        """The decay of least loss on held-out rows, and that loss for each decay."""
        if len(x) < FEWEST:
            return DECAY, {}
        order = random.permutation(len(x))
        count = min(max(1, round(share * len(x))), len(x) - 1)
        held, kept = np.sort(order[:count]), np.sort(order[count:])
        stack = train_members(x[kept], loss_of(kept), weights[kept] / weights[kept].mean(), DECAYS, rule, stream)
        losses = loss_of(held).value(_scores(stack, x[held]))
        means = np.average(losses, axis=1, weights=weights[held])
        return DECAYS[int(np.argmin(means))], dict(zip(DECAYS, means.tolist(), strict=True))

    def _outputs(self, X: object) -> Float64Array:
        """The network at every row, shape (rows,) or (rows, outputs)."""
        check_is_fitted(self)
        table = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.network_(table), dtype=np.float64)

    @property
    def _progress(self) -> Callable[[int, int], object] | None:
        return told(bool(self.verbose), "training")


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


def _scores(stack: MemberStack, x: AnyArray) -> AnyArray:
    """The outputs of all networks on some rows, shape (networks, rows, outputs)."""
    z = np.matmul(x, stack.hidden.transpose(0, 2, 1)) + stack.bias[:, None, :]
    return np.asarray(np.matmul(np.maximum(z, 0.0), stack.output) + stack.offset[:, None, :])


def _summary(model: Any, top: int) -> str:
    network, seen = model.network_, model.sparsity_
    mean = float(seen.counts @ np.arange(len(seen.counts)) / seen.inputs_checked)
    never = int((model._firing == 0).sum())
    bounds = [f"{name} = {value:.4g}" for name, value in zip("WB", model.norms_, strict=True)]
    lines = [
        f"{network.width} neurons on {network.inputs} columns, at most {model.k} to fire; {', '.join(bounds)}",
        f"on {seen.inputs_checked} training rows {mean:.2f} fire in the mean, {seen.max_active} at most; "
        f"{never} neurons never do",
    ]
    told = ", ".join(f"{decay:g}: {loss:.4g}" for decay, loss in model.decay_scores_.items())
    lines.append(f"weight decay {model.weight_decay_:g}" + (f" (held-out loss by decay {told})" if told else ""))
    reach = np.abs(network.output.reshape(network.width, -1)).max(axis=1)
    strength = model._firing * reach * np.linalg.norm(network.hidden, axis=1)
    names = column_names(model)
    for neuron in np.argsort(-strength, kind="stable")[:top].tolist():
        if not strength[neuron]:
            break
        row = network.hidden[neuron]
        heavy = np.argsort(-np.abs(row), kind="stable")[:4]
        terms = " ".join(f"{row[column]:+.3g}·{names[column]}" for column in heavy.tolist() if row[column])
        more = " …" if np.count_nonzero(row) > len(heavy) else ""
        sign = np.atleast_1d(network.output[neuron])
        outputs = f"output {sign[0]:+.3g}" if len(sign) == 1 else f"most for output {int(np.argmax(sign))}"
        lines.append(f"neuron {neuron}: fires on {model._firing[neuron]:.1%}, {outputs}: {terms}{more}")
    return "\n".join(lines)
