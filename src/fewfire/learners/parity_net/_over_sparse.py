"""Schedule "over_sparse": one first-layer step from rows of s > 4k ones, then the second layer (pareto, Theorem 4/16).

With f = 0 at the start, the full-batch step of rate η = 1/(2k|C|), C = ½ Maj_s(k−1), and total decay turns a neuron
whose ones contain the support into ±Σ_{j∈S} x_j/(2k) plus its bias, and leaves the others silent (Lemmas 8, 9).

The theorem has no truncation and asks for s in the thousands to make the other coordinates of a good neuron, of
size c/C ≈ k/s each, harmless. The practical setting zeroes gradients below (|C| + |c|)/2: good
neurons then hold exactly the support once the sampling noise 1/√(2m) is a few times below (|C| − |c|)/2.
"""

from __future__ import annotations

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire.engines import PerLayer, Phase, Schedule
from fewfire.learners.parity_net._outcome import Outcome, Task
from fewfire.learners.parity_net._second_layer import fit_output
from fewfire.networks import init
from fewfire.theory.pareto import over_sparse_gap


def train_over_sparse(task: Task) -> Outcome:
    """One truncated step on the first layer, then the convex second layer."""
    k = required_k(task, "over_sparse")
    if k % 2:
        # Majority has no Fourier weight on sets of even size: the first step would see nothing.
        raise invalid("k", "must be even (pareto, Theorem 4)", k, 'use schedule="sgd" for odd parities')
    smallest = 4 * k + 1
    if task.strict and (task.sparsity % 2 == 0 or not smallest <= task.sparsity < task.inputs):
        rule = f"must be odd, above 4k = {4 * k} and below the {task.inputs} inputs (pareto, Lemma 8)"
        raise invalid("sparsity", rule, task.sparsity, f"use {smallest}, or pass strict=False")
    initial = init.over_sparse(k, task.sparsity, strict=False)(task.inputs, task.width, Stream(task.seed, "init"))
    gap = over_sparse_gap(k, max(task.sparsity, k) | 1)  # an even sparsity is taken for the next odd one
    size = abs(gap.relevant)
    step = Phase(
        1,
        PerLayer(hidden=1 / (2 * k * size)),
        weight_decay=PerLayer(hidden=1.0),
        truncation=PerLayer(hidden=(size + abs(gap.irrelevant)) / 2),
        decay="direct",
        batch_size=None,
    )
    result = task.train(initial, Schedule((step,)))
    moved = np.any(result.network.hidden != 0, axis=1)
    network = fit_output(result.network, task, moved)
    return Outcome(initial, network, result)


def required_k(task: Task, schedule: str) -> int:
    """The number of bits, which the theorems' schedules have to be told."""
    if task.k is None:
        raise invalid("k", f'must be given for schedule="{schedule}"', None, "pass the number of bits of the parity")
    if not 1 <= task.k <= task.inputs:
        raise invalid("k", f"must be between 1 and the {task.inputs} inputs", task.k)
    return task.k
