"""Robust training of wide networks at the cost of what is active (sublinear, Algorithm 1).

`trainer(method, network, X, reach)` makes an `ActiveTrainer`: "dense" scores every neuron on every example, "lists"
only pairs near the threshold, "index" what half-space reporting finds, with the same results.
"""

from fewfire.engines.robust._dense import DenseTrainer
from fewfire.engines.robust._index import IndexTrainer
from fewfire.engines.robust._lists import ListTrainer
from fewfire.engines.robust._registry import TRAINERS, TrainerMethod, trainer
from fewfire.engines.robust._trainer import ActiveTrainer, TrainerCounters

__all__ = [
    "TRAINERS",
    "ActiveTrainer",
    "DenseTrainer",
    "IndexTrainer",
    "ListTrainer",
    "TrainerCounters",
    "TrainerMethod",
    "trainer",
]
