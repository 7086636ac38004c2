"""Robust training of wide networks at the cost of what is active (sublinear, Algorithm 1).

`trainer(method, network, X, reach)` makes an `ActiveTrainer`: "dense" scores every neuron on every example, "lists"
only pairs near the threshold, "index" what half-space reporting finds, with the same results.
"""

from fewfire.engines.robust._registry import trainer
from fewfire.engines.robust._trainer import ActiveTrainer

__all__ = ["ActiveTrainer", "trainer"]
