"""Small networks and moves for the tests of fewfire.engines.robust."""

import numpy as np

from fewfire.halfspace import Index
from fewfire.networks import TwoLayer, shifted_relu


def problem(width, inputs, examples, threshold=0.4, seed=0):
    """A random network with a shifted relu, anchors, and the generator to go on with."""
    rng = np.random.default_rng([width, inputs, examples, seed])
    hidden = rng.normal(size=(width, inputs)).astype(np.float32) / np.float32(np.sqrt(inputs))
    output = rng.choice([-1.0, 1.0], size=width) / np.sqrt(width)
    net = TwoLayer(hidden, rng.normal(size=width) * 0.3, output, 0.25, shifted_relu(threshold))
    return net, rng.normal(size=(examples, inputs)).astype(np.float32), rng


def move(X, reach, rng):
    """Every example somewhere in its ball: some at rest, some on the border."""
    step = rng.normal(size=X.shape)
    step *= reach * rng.choice([0.0, 0.5, 1.0], size=(len(X), 1)) / np.linalg.norm(step, axis=1, keepdims=True)
    return (X + step).astype(np.float32)


def close(got, expected, scale=1e-5):
    """Equal to `scale`, relative to the largest entry (or 1)."""
    assert np.abs(got - expected).max() <= scale * max(np.abs(expected).max(), 1.0)


def verify(trainer, X):
    """Compare what a trainer keeps with a scan of all pairs at the examples that it was asked about last."""
    if trainer.name == "lists":
        assert trainer._core.missing() is None  # an active pair (neuron, example) that no list holds
    elif trainer.name == "index":
        net = trainer.network()
        scan = Index(net.hidden, net.bias, "scan").query_batch(X, np.float32(net.activation.threshold))
        report = trainer.index.query_batch(X, np.float32(net.activation.threshold))
        assert np.array_equal(scan.indptr, report.indptr) and np.array_equal(scan.indices, report.indices)
