"""Schedule "correlated": gradient descent on D_A from the symmetric start (parities, Theorem 2).

Step 1 has η = 1 and λ = ½, so it replaces every weight by minus its gradient: good neurons become
σ(α u z/n + b), z = Σ_{j∈A} x_j, with u uniform, hence kinks at every value of z. Then η = k²/(T√q) on both layers.

"descent" carries out the second part as stated, on minibatches; with networks of practical size its rates are far
too small to reach the parity. "solver" stops after step 1 and solves the convex second layer.

The paper's inputs are ±1/√n. On ±1 inputs the first layer's rate is divided by n (see `networks.init.symmetric`).
"""

from __future__ import annotations

import math

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_choice
from fewfire.engines import PerLayer, Phase, Schedule
from fewfire.learners.parity_net._outcome import Outcome, Task
from fewfire.learners.parity_net._over_sparse import required_k
from fewfire.learners.parity_net._second_layer import fit_output
from fewfire.networks import init


def train_correlated(task: Task) -> Outcome:
    """The first step on the whole sample, then both layers, or the convex second layer alone."""
    k, n = required_k(task, "correlated"), task.inputs
    check_choice("second_layer", task.second_layer, ("solver", "descent"))
    if task.strict and (k % 2 == 0 or k < 3):
        raise invalid("k", "must be odd and at least 3 (parities, section 2)", k, "or pass strict=False")
    if task.width % 2:
        raise invalid("width", "must be even, because neurons come in pairs", task.width, f"use {task.width + 1}")
    initial = init.symmetric(k, strict=False)(n, task.width, Stream(task.seed, "init"))
    decay = PerLayer(hidden=1.0, output=1.0)
    phases = [Phase(1, PerLayer(1 / n, 1.0, 1.0, 0.0), decay, decay="direct", batch_size=None)]
    if task.second_layer == "descent":
        rate = k**2 / (task.max_steps * math.sqrt(task.width / 2))
        phases.append(Phase(task.max_steps, PerLayer(rate / n, rate, rate, 0.0), batch_size=task.batch_size))
    result = task.train(initial, Schedule(tuple(phases)))
    network = result.network
    if task.second_layer == "solver":
        network = fit_output(network, task, np.ones(task.width, dtype=bool))
    return Outcome(initial, network, result)
