"""Schedule "sgd": minibatch SGD with coupled weight decay on all layers (pareto, C.1).

The paper's settings are the estimator's defaults: rate 0.1, decay 0.01, batches of 32, hinge loss, start with 2
non-zero weights a neuron (or PyTorch's dense one).
"""

from __future__ import annotations

from fewfire._random import Stream
from fewfire._validate import check_choice
from fewfire.engines import Phase, Schedule
from fewfire.learners.parity_net._outcome import Outcome, Task
from fewfire.networks import init


def train_sgd(task: Task) -> Outcome:
    """Train until `max_steps`, or until the held-out part, if there is one, is without error."""
    check_choice("init", task.start, ("sparse", "dense"))
    start = init.dense() if task.start == "dense" else init.sparse(task.sparsity)
    initial = start(task.inputs, task.width, Stream(task.seed, "init"))
    phase = Phase(task.max_steps, task.learning_rate, task.weight_decay, batch_size=task.batch_size)
    stop = None if task.X_held is None else 0.0
    evaluate = "log" if stop is None else max(1, task.max_steps // 100)
    schedule = Schedule((phase,), loss=task.loss, evaluate=evaluate, stop_error=stop)
    result = task.train(initial, schedule)
    return Outcome(initial, result.network, result)
