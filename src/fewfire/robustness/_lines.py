"""Points that a certificate proposes: where the lines that bound a rival's lead from above are highest.

A gradient is that of the neurons which fire at one point. The lines of `_bounds` hold over the whole set: an open
neuron that helps the rival counts with the slope u/(u − l) of its chord. The point at which a proof by these lines
fails is a candidate for an attack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import InvalidArgument
from fewfire.robustness._bounds import on_shared_neurons
from fewfire.robustness._problem import Worst

if TYPE_CHECKING:
    from fewfire.robustness._bounds import ReluNetwork
    from fewfire.robustness._problem import AttackProblem
    from fewfire.robustness._score_function import Scores


def certifiable(scores: Scores) -> tuple[ReluNetwork, ...] | None:
    """The formulas that a certificate bounds, on one array of neurons; None where it takes no such model."""
    try:
        networks = scores.relu_networks()
    except InvalidArgument:
        return None
    return None if networks is None else on_shared_neurons(networks)


def lowest_of_lines(problem: AttackProblem, networks: tuple[ReluNetwork, ...]) -> Worst:
    """The points at which the upper line of the nearest rival's lead is highest; of a regressor's error, either way."""
    centres, kind, first = problem.centres, problem.centres.dtype, networks[0]
    hidden, bias = first.hidden.astype(kind), first.bias.astype(kind)
    outputs = np.stack([net.output for net in networks]).astype(kind)
    z = centres @ hidden.T + bias
    # Exact ranges take as long as three gradients; these hold as well, and a point need not be proved.
    most = (problem.threat.reach(centres.shape[1]) * np.linalg.norm(hidden, axis=1)).astype(kind)
    low, high = z - most, z + most
    fires, may_fire = z > first.threshold, high > first.threshold
    chord = np.where(low > 0.0, 1.0, high / np.where(high > low, high - low, 1.0)) * may_fire
    straight = [net.linear for net in networks if net.linear is not None]
    scores = problem.scores.scores(centres)
    directions, worst = problem.directions(scores, 1), Worst(centres, problem.criterion.value(scores))
    for k in range(len(directions)):
        weights = directions.weights[:, k].astype(kind)
        lead = weights @ outputs
        gradients: Any = (lead * np.where(lead > 0.0, chord, fires)).astype(kind) @ hidden
        if straight:  # linear models
            gradients = gradients + weights @ np.stack(straight).astype(kind)
        points = problem.threat.extreme(gradients, centres)
        worst.add(np.arange(len(problem)), points, problem.criterion.value(problem.scores.scores(points)))
    return worst
