"""Schedule "under_sparse": one truncated step from rows of s < k ones and ε elsewhere (pareto, Theorem 5/21).

A neuron whose ones S' lie inside the support has gradient ξ = ½ Half_s(s)·Maj_{n−s}(k−s−1) on the missing bits and a
far smaller one elsewhere (Lemma 20; ratio (n−k)/(k−s−1)). The step keeps the share ε/(2k) of the old weights and adds
±ε/(2k) on the missing bits, so the neuron becomes ε/(2k)·Σ_{j∈S} x_j. Truncation halfway between the two gradients
drops the rest; the printed level, the gradient outside S, needs more samples for the same effect.

The theorem ends with the existence of a subnetwork; the second layer is fitted on top.
"""

from __future__ import annotations

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire.engines import PerLayer, Phase, Schedule
from fewfire.learners.parity_net._outcome import Outcome, Task
from fewfire.learners.parity_net._over_sparse import required_k
from fewfire.learners.parity_net._second_layer import fit_output
from fewfire.networks import init
from fewfire.theory.pareto import under_sparse_gap


def train_under_sparse(task: Task) -> Outcome:
    """One truncated step on the first layer, then the convex second layer."""
    k, s, n = required_k(task, "under_sparse"), task.sparsity, task.inputs
    if k % 2 or s % 2 or not 0 < s < k:
        raise invalid("sparsity", f"and k must be even, with sparsity below k = {k} (pareto, Theorem 21)", s, "use 2")
    if (n - s) % 2 == 0:
        rule = f"must have an odd number of columns besides the {s} of a neuron (pareto, Lemmas 18 to 20)"
        raise invalid("X", rule, f"shape {task.X.shape}", "append or drop a column")
    eps = 1 / (2 * (n - s))
    initial = init.under_sparse(k, s, eps)(n, task.width, Stream(task.seed, "init"))
    gap = under_sparse_gap(n, k, s)
    size = abs(gap.relevant)
    step = Phase(
        1,
        PerLayer(hidden=eps / (2 * k * size)),
        weight_decay=PerLayer(hidden=1 - eps / (2 * k)),
        truncation=PerLayer(hidden=(size + abs(gap.irrelevant)) / 2),
        decay="direct",
        batch_size=None,
    )
    result = task.train(initial, Schedule((step,)))
    kept = eps / (2 * k) * initial.hidden
    # Rounding aside, a neuron that no gradient reached holds exactly the kept share of its start.
    moved = np.any(np.abs(result.network.hidden - kept) > eps / (8 * k), axis=1)
    network = fit_output(result.network, task, moved)
    return Outcome(initial, network, result)
