"""ReLU networks of any depth on scikit-learn's digits, all seeds of a shape at once, and their activity.

Networks of one shape are the blocks of batched products, so ten of them cost little more than one. He's start, biases
0, Adam, cross-entropy; each network has its own weights and its own order of the images. Activity is the share of
(image, neuron) pairs of a layer with a positive ReLU, on test images.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fewfire._optional import require
from fewfire._random import Stream

torch: Any = require("torch", "torch", "fewfire.experiments.lazy_neurons")


def digits() -> tuple[Any, Any, Any, Any]:
    """Images to train on and their labels, 1200, and to test on, 597; pixels less their means, of deviation 1."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = Stream(0, "data").permutation(len(X))
    images, labels = torch.tensor(X[order], dtype=torch.float32), torch.tensor(y[order])
    images = (images - images[:1200].mean(dim=0)) / images[:1200].std()
    return images[:1200], labels[:1200], images[1200:], labels[1200:]


@dataclass(frozen=True)
class DigitsTraining:
    """How networks are trained: epochs, batch size, Adam's rate, and after which epochs activity is measured."""

    epochs: int
    batch_size: int = 100
    learning_rate: float = 1e-2

    def measured_epochs(self) -> list[int]:
        """0, 1, 2, 4, … and the last."""
        return sorted({0, self.epochs, *(1 << i for i in range(20) if 1 << i < self.epochs)})


class NetworkStack:
    """Networks of one shape, one per seed.

    Parameters
    ----------
    sizes : list of int
        Inputs, the widths of the hidden layers, outputs.
    seeds : int
        How many networks.
    """

    def __init__(self, sizes: list[int], seeds: int) -> None:
        draws = [torch.Generator().manual_seed(seed) for seed in range(seeds)]
        self.weights, self.biases = [], []
        for inputs, outputs in pairwise(sizes):
            drawn = [torch.randn(inputs, outputs, generator=draw) * (2 / inputs) ** 0.5 for draw in draws]
            self.weights.append(torch.stack(drawn).requires_grad_())
            self.biases.append(torch.zeros(seeds, 1, outputs, requires_grad=True))
        self.draws = draws

    def forward(self, x: Any) -> tuple[Any, list[Any]]:
        """Logits of shape (seeds, rows, outputs), and the features of the hidden layers; x is (seeds, rows, inputs)."""
        features = []
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = torch.relu(torch.baddbmm(bias, x, weight))
            features.append(x)
        return torch.baddbmm(self.biases[-1], x, self.weights[-1]), features


def train_digits(width: int, depth: int, seeds: int, training: DigitsTraining) -> dict[str, Any]:
    """Train networks of `depth` hidden layers of `width` neurons.

    Returns
    -------
    dict
        "epochs" measured; "activity", an array (epochs, layers, seeds) as nested lists; "accuracy" per seed at the end.
    """
    X, y, X_test, y_test = digits()
    stack = NetworkStack([X.shape[1], *[width] * depth, 10], seeds)
    optimiser = torch.optim.Adam([*stack.weights, *stack.biases], lr=training.learning_rate)
    tests = X_test.expand(seeds, -1, -1)
    measured, activity = training.measured_epochs(), []
    for epoch in range(training.epochs + 1):
        if epoch in measured:
            with torch.inference_mode():
                logits, features = stack.forward(tests)
                activity.append([(layer > 0).float().mean(dim=(1, 2)).tolist() for layer in features])
        if epoch == training.epochs:
            break
        orders = torch.stack([torch.randperm(len(X), generator=draw) for draw in stack.draws])
        for rows in orders.split(training.batch_size, dim=1):
            logits, _ = stack.forward(X[rows])
            # Summed over networks, so that none learns more slowly for the company of the others.
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y[rows].flatten()) * seeds
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.inference_mode():
        right = (stack.forward(tests)[0].argmax(dim=2) == y_test).float().mean(dim=1)
    return {"epochs": measured, "activity": np.round(activity, 6).tolist(), "accuracy": right.tolist()}
