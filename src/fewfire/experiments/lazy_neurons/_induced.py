"""Two-layer networks on digits whose activity is brought down by the helpers of `fewfire.torch`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import fewfire.torch as ft
from fewfire._optional import require
from fewfire.experiments.lazy_neurons._digits import digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire.experiments.recipes.sparse_activations.inducing import InducingSettings
    from fewfire.networks import TwoLayer

torch: Any = require("torch", "torch", "fewfire.experiments.lazy_neurons")

BATCH, RATE = 100, 2e-3


def make(activation: Any, width: int, seed: int, inputs: int = 64) -> Any:
    """A two-layer network of PyTorch's own start."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(inputs, width), activation, torch.nn.Linear(width, 10))


def train(model: Any, epochs: int, seed: int, **penalty: Any) -> Any:
    """Train on the images, with an `ActivityPenalty` of these arguments where there are any."""
    X, y, _, _ = digits()
    return fit(model, X, y, epochs, seed, **penalty)


def fit(model: Any, X: Any, y: Any, epochs: int, seed: int, **penalty: Any) -> Any:
    """Train by Adam on cross-entropy."""
    draw = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
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


def judge(model: Any) -> tuple[float, float]:
    """Share of neurons that fire, and accuracy, on test images."""
    _, _, X, y = digits()
    with torch.inference_mode():
        features = model[1](model[0](X))
        return float((features > 0).float().mean()), float((model[2](features).argmax(dim=1) == y).float().mean())


def measure_seed(settings: InducingSettings, width: int, seed: int) -> Iterator[tuple[str, float, float, float]]:
    """Method, setting, activity and accuracy of every point for one seed."""
    nn, epochs = torch.nn, settings.epochs
    smooth = train(make(nn.GELU(), width, seed), epochs, seed)
    yield "gelu", 0.0, 1.0, judge(smooth)[1]
    for threshold in settings.thresholds:
        model = copy.deepcopy(smooth)
        ft.relufy(model, threshold)
        yield "relufied, untrained", threshold, *judge(model)
        yield "relufied", threshold, *judge(train(model, settings.tuning, seed))
    for weight in settings.weights:
        yield "l1", weight, *judge(train(make(nn.ReLU(), width, seed), epochs, seed, weight=weight))
    for target in settings.targets:
        yield "target", target, *judge(train(make(nn.ReLU(), width, seed), epochs, seed, target=target))
    for keep in settings.kept:
        model = train(make(nn.ReLU(), width, seed), epochs, seed, keep=keep, weight=settings.weights[-2])
        yield "top-k", float(keep), *judge(model)


def sign_block(width: int, epochs: int, target: float | None, seed: int) -> tuple[TwoLayer, float]:
    """A two-layer network on 4×4 images of signs, trained plainly or to a target activity, and its test accuracy.

    A pixel is the mean of 2×2, above or below the mean of that pixel over the images to train on.
    """
    X, y, X_test, y_test = digits()
    train, test = (part.reshape(-1, 4, 2, 4, 2).mean(dim=(2, 4)).flatten(1) for part in (X, X_test))
    signs, test_signs = (torch.where(part > train.mean(dim=0), 1.0, -1.0) for part in (train, test))
    model = make(torch.nn.ReLU(), width, seed, inputs=signs.shape[1])
    fit(model, signs, y, epochs, seed, **({} if target is None else {"target": target}))
    with torch.inference_mode():
        right = float((model(test_signs).argmax(dim=1) == y_test).float().mean())
    return ft.from_sequential(model), right
