"""ReLU networks on scikit-learn's digits: of any depth, all seeds of a shape at once, and two layers made sparse.

Networks of one shape are the blocks of batched products, so ten of them cost little more than one. He's start, biases
0, Adam, cross-entropy; each network has its own weights and its own order of the images. Activity is the share of
(image, neuron) pairs of a layer with a positive ReLU, on test images. Two-layer networks become sparse by the helpers
of `fewfire.torch`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

import fewfire.torch as ft
from fewfire._optional import require
from fewfire._random import Stream
from fewfire.networks import TwoLayer

torch: Any = require("torch", "torch", "fewfire.papers.sparse_activations.lazy_neurons")

BATCH = 100
DEEP_RATE, TWO_LAYER_RATE = 1e-2, 2e-3  # Adam's rates
THRESHOLDS, WEIGHTS = (0.0, 0.5, 1.0, 2.0), (0.0, 1.0, 10.0, 30.0)
TARGETS, KEEP = (0.3, 0.2, 0.1, 0.05), (64, 32, 16, 8)
"""The points of each way to make neurons fire less: shifts, weights of ℓ1, activities, neurons of the teacher."""


def digits() -> tuple[Any, Any, Any, Any]:
    """Images to train on and their labels, 1200, and to test on, 597; pixels less their means, of deviation 1."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = Stream(0, "data").permutation(len(X))
    images, labels = torch.tensor(X[order], dtype=torch.float32), torch.tensor(y[order])
    images = (images - images[:1200].mean(dim=0)) / images[:1200].std()
    return images[:1200], labels[:1200], images[1200:], labels[1200:]


def train_digits(width: int, depth: int, seeds: int, epochs: int) -> dict[str, Any]:
    """Train networks of `depth` hidden layers of `width` neurons, one per seed."""
    X, y, X_test, y_test = digits()
    draws = [torch.Generator().manual_seed(seed) for seed in range(seeds)]
    weights, biases = [], []
    for inputs, outputs in pairwise([X.shape[1], *[width] * depth, 10]):
        drawn = [torch.randn(inputs, outputs, generator=draw) * (2 / inputs) ** 0.5 for draw in draws]
        weights.append(torch.stack(drawn).requires_grad_())
        biases.append(torch.zeros(seeds, 1, outputs, requires_grad=True))

    def forward(x: Any) -> list[Any]:
        """What each layer computes before its ReLU, the logits last; all are (seeds, rows, neurons), as x is."""
        layers: list[Any] = []
        for weight, bias in zip(weights, biases, strict=True):
            layers.append(torch.baddbmm(bias, torch.relu(layers[-1]) if layers else x, weight))
        return layers

    optimiser = torch.optim.Adam([*weights, *biases], lr=DEEP_RATE)
    tests = X_test.expand(seeds, -1, -1)
    measured = sorted({0, epochs, *(1 << i for i in range(20) if 1 << i < epochs)})  # 0, 1, 2, 4, … and the last
    activity = []
    for epoch in range(epochs + 1):
        if epoch in measured:
            with torch.inference_mode():
                activity.append([(layer > 0).float().mean(dim=(1, 2)).tolist() for layer in forward(tests)[:-1]])
        if epoch == epochs:
            break
        orders = torch.stack([torch.randperm(len(X), generator=draw) for draw in draws])
        for rows in orders.split(BATCH, dim=1):
            # Summed over networks: each has the gradient that it would have alone.
            loss = torch.nn.functional.cross_entropy(forward(X[rows])[-1].flatten(0, 1), y[rows].flatten()) * seeds
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.inference_mode():
        right = (forward(tests)[-1].argmax(dim=2) == y_test).float().mean(dim=1)
    return {"epochs": measured, "activity": np.round(activity, 6).tolist(), "accuracy": right.tolist()}


def make(activation: Any, width: int, seed: int, inputs: int = 64) -> Any:
    """A two-layer network of PyTorch's own start."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(inputs, width), activation, torch.nn.Linear(width, 10))


def fit(model: Any, X: Any, y: Any, epochs: int, seed: int, **penalty: Any) -> Any:
    """Train by Adam on cross-entropy, with an `ActivityPenalty` of these arguments where there are any."""
    draw = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=TWO_LAYER_RATE)
    term = ft.ActivityPenalty(model, **penalty) if penalty else None
    for _ in range(epochs):
        for rows in torch.randperm(len(X), generator=draw).split(BATCH):
            loss = torch.nn.functional.cross_entropy(model(X[rows]), y[rows])
            if term is not None:
                loss = loss + term()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    if term is not None:
        term.close()
    return model


def measure_induced(width: int, epochs: int, tuning: int, seed: int) -> Iterator[dict[str, Any]]:
    """Method, setting, activity and accuracy of every point for one seed, on test images."""
    nn = torch.nn
    X, y, X_test, y_test = digits()

    def evaluated(method: str, setting: float, model: Any) -> dict[str, Any]:
        with torch.inference_mode():
            features = model[1](model[0](X_test))
            right = (model[2](features).argmax(dim=1) == y_test).float().mean()
            activity, accuracy = (round(float(share), 5) for share in ((features > 0).float().mean(), right))
        return {"method": method, "setting": setting, "seed": seed, "activity": activity, "accuracy": accuracy}

    smooth = fit(make(nn.GELU(), width, seed), X, y, epochs, seed)
    yield evaluated("gelu", 0.0, smooth) | {"activity": 1.0}
    for threshold in THRESHOLDS:
        model = copy.deepcopy(smooth)
        ft.relufy(model, threshold)
        yield evaluated("relufied, untrained", threshold, model)
        yield evaluated("relufied", threshold, fit(model, X, y, tuning, seed))
    penalties = [("l1", weight, {"weight": weight}) for weight in WEIGHTS]
    penalties += [("target", target, {"target": target}) for target in TARGETS]
    penalties += [("top-k", float(keep), {"keep": keep, "weight": WEIGHTS[-2]}) for keep in KEEP]
    for method, setting, penalty in penalties:
        yield evaluated(method, setting, fit(make(nn.ReLU(), width, seed), X, y, epochs, seed, **penalty))


def sign_block(width: int, epochs: int, target: float | None, seed: int) -> tuple[TwoLayer, float]:
    """A two-layer network on 4×4 images of signs, trained plainly or to a target activity, and its test accuracy."""
    X, y, X_test, y_test = digits()
    train, test = (part.reshape(-1, 4, 2, 4, 2).mean(dim=(2, 4)).flatten(1) for part in (X, X_test))
    signs, test_signs = (torch.where(part > train.mean(dim=0), 1.0, -1.0) for part in (train, test))
    model = make(torch.nn.ReLU(), width, seed, inputs=signs.shape[1])
    fit(model, signs, y, epochs, seed, **({} if target is None else {"target": target}))
    with torch.inference_mode():
        right = float((model(test_signs).argmax(dim=1) == y_test).float().mean())
    return ft.from_sequential(model), right
