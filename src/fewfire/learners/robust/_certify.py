"""Certificates: a margin that no adversary of radius ρ can go below, whatever it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire.learners.robust._attack import BLOCK, choose_threat
from fewfire.learners.robust._blas import calm_products
from fewfire.learners.robust._bounds import BOUNDS, difference, lower_bounds, negative
from fewfire.learners.robust._heads import Heads
from fewfire.learners.robust._models import Target, check_rows, recognise
from fewfire.learners.robust._perceptron import Perceptron
from fewfire.learners.robust._threats import check_within
from fewfire.networks import TwoLayer

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.learners.robust._threats import Threat


@dataclass(frozen=True, eq=False)
class Certificate:
    """Lower bounds on the margin over the adversary's set.

    Parameters
    ----------
    margin : array of shape (rows,)
        As in `AttackResult`, and never above what any attack can reach, up to the rounding of float64.
    bound : array of str of shape (rows,)
        Which bound was the best: "interval", "pattern", "relaxed" or "floor".
    open_neurons : int array of shape (rows,)
        Neurons that may be active or not within the set; where there is none the bound is exact (for norm "l2" without
        bounds).
    """

    margin: Float64Array
    bound: AnyArray
    open_neurons: AnyArray

    @property
    def robust(self) -> AnyArray:
        """Whether the margin is proved positive, shape (rows,): no attack changes the class."""
        return self.margin > 0.0

    @property
    def accuracy(self) -> float:
        """Share of rows that are proved robust: a lower bound on the accuracy under any attack."""
        return float(np.mean(self.robust))


def certify(
    model: Any, X: object, y: object, rho: float | None = None, norm: str | None = None, *, bounds: Any = None
) -> Certificate:
    """Prove a lower bound on the margin of each row within ρ of it.

    For classifiers the margin is y·f (two classes) or the true score less the largest other; for regressors −|f − y|.
    Networks of one hidden layer with a ReLU or shifted ReLU only.

    Parameters
    ----------
    model, X, y, rho, norm, bounds
        As in `attack`.
    """
    target = recognise(model, y)
    networks = _two_layer(target)
    table = check_rows(target, X)
    labels, threat = target.labels(y, len(table)), choose_threat(target, rho, norm, bounds)
    check_within(table, threat)
    points, rows = target.points(table), max(1, BLOCK // (4 * target.scores.width))
    with calm_products(min(rows, len(points)) * target.scores.width * target.scores.inputs):
        parts = [
            _margins(target, networks, points[start : start + rows], labels[start : start + rows], threat)
            for start in range(0, len(points), rows)
        ]
    return Certificate(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _margins(
    target: Target, networks: tuple[TwoLayer, ...], points: Float64Array, labels: AnyArray, threat: Threat
) -> tuple[Float64Array, AnyArray, AnyArray]:
    """The least over all functions that bound the margin: f or −f, the error on either side, f_y − f_j."""
    margin, best = np.full(len(points), np.inf), np.zeros(len(points), dtype=np.int64)
    undecided = np.zeros(len(points), dtype=np.int64)

    def include(chosen: AnyArray, net: TwoLayer, constant: AnyArray) -> None:
        if not chosen.size:
            return
        table, still_open = lower_bounds(net, points[chosen], threat)
        value = table.max(axis=0) + constant
        lower = value < margin[chosen]
        margin[chosen[lower]], best[chosen[lower]] = value[lower], table.argmax(axis=0)[lower]
        undecided[chosen] = np.maximum(undecided[chosen], still_open)

    everyone = np.arange(len(points))
    if target.classes is None:
        include(everyone, networks[0], -labels)
        include(everyone, negative(networks[0]), labels)
    elif len(networks) == 1:
        include(everyone[labels > 0], networks[0], np.zeros(int(np.sum(labels > 0))))
        include(everyone[labels < 0], negative(networks[0]), np.zeros(int(np.sum(labels < 0))))
    else:
        for own, first in enumerate(networks):
            chosen = everyone[labels == own]
            for other, second in enumerate(networks):
                if other != own:
                    include(chosen, difference(first, second), np.zeros(len(chosen)))
    return margin, np.array(BOUNDS)[best], undecided


def _two_layer(target: Target) -> tuple[TwoLayer, ...]:
    """The networks of a target in float64, one a score; a perceptron must have one hidden layer of ReLUs."""
    scores = target.scores
    if isinstance(scores, Heads):
        return scores.networks
    if not isinstance(scores, Perceptron) or len(scores.weights) != 2 or scores.activation != "relu":
        got = f"a perceptron of {len(scores.weights) - 1} hidden layers of {scores.activation}"
        raise invalid("model", "must have one hidden layer of relu neurons to be certified", got)
    (first, second), (bias, offsets) = scores.weights, scores.biases
    return tuple(
        TwoLayer(first.T, bias, second[:, output], float(offsets[output])) for output in range(second.shape[1])
    )
