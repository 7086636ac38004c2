"""Certificates: a margin that no adversary of radius ρ can go below, whatever it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._blas import calm_products
from fewfire._errors import invalid
from fewfire.robustness._adapter import adapter_of
from fewfire.robustness._attack import BLOCK, choose_threat
from fewfire.robustness._bounds import BOUNDS, ReluNetwork, lower_bounds
from fewfire.robustness._threats import check_within

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._threats import Norm, Threat


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
    model: Any, X: object, y: object, rho: float | None = None, norm: Norm | None = None, *, bounds: Any = None
) -> Certificate:
    """Prove a lower bound on the margin of each row within ρ of it.

    For classifiers the margin is y·f (two classes) or the true score less the largest other; for regressors −|f − y|.
    Linear models and networks of one hidden layer with a ReLU or shifted ReLU only.

    Parameters
    ----------
    model, X, y, rho, norm, bounds
        As in `attack`.
    """
    adapter = adapter_of(model, X, y)
    networks = adapter.scores.relu_networks()
    if networks is None:
        rule = "must be linear or have one hidden layer of relu neurons to be certified"
        raise invalid("model", rule, f"a {type(model).__name__}", "use attack, whose margins are upper bounds")
    table = adapter.check_rows(X)
    labels, threat = adapter.labels(y, len(table)), choose_threat(adapter, rho, norm, bounds)
    check_within(table, threat)
    points, width = adapter.points(table), adapter.scores.width
    rows = max(1, BLOCK // (4 * width))
    with calm_products(min(rows, len(points)) * width * adapter.scores.inputs):
        parts = [
            _margins(adapter, networks, points[start : start + rows], labels[start : start + rows], threat)
            for start in range(0, len(points), rows)
        ]
    return Certificate(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _margins(
    adapter: ModelAdapter, networks: tuple[ReluNetwork, ...], points: Float64Array, labels: AnyArray, threat: Threat
) -> tuple[Float64Array, AnyArray, AnyArray]:
    """The least over all functions that bound the margin: f or −f, the error on either side, f_y − f_j."""
    margin, best = np.full(len(points), np.inf), np.zeros(len(points), dtype=np.int64)
    undecided = np.zeros(len(points), dtype=np.int64)

    def include(chosen: AnyArray, net: ReluNetwork, constant: AnyArray) -> None:
        if not chosen.size:
            return
        table, still_open = lower_bounds(net, points[chosen], threat)
        value = table.max(axis=0) + constant
        lower = value < margin[chosen]
        margin[chosen[lower]], best[chosen[lower]] = value[lower], table.argmax(axis=0)[lower]
        undecided[chosen] = np.maximum(undecided[chosen], still_open)

    everyone = np.arange(len(points))
    if adapter.classes is None:
        include(everyone, networks[0], -labels)
        include(everyone, -networks[0], labels)
    elif len(networks) == 1:
        include(everyone[labels > 0], networks[0], np.zeros(int(np.sum(labels > 0))))
        include(everyone[labels < 0], -networks[0], np.zeros(int(np.sum(labels < 0))))
    else:
        for own, first in enumerate(networks):
            chosen = everyone[labels == own]
            for other, second in enumerate(networks):
                if other != own:
                    include(chosen, first - second, np.zeros(len(chosen)))
    return margin, np.array(BOUNDS)[best], undecided
