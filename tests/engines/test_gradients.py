"""Gradients against finite differences and, where torch is installed, autograd."""

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire.engines import gradients
from fewfire.engines._gradients import LOSSES
from fewfire.networks import TwoLayer, init, shifted_relu

ACTIVATIONS = ["relu", "relu6", shifted_relu(0.3)]


def setting(activation, loss, rows=23, inputs=5, width=7):
    stream = Stream(5, "gradients")
    hidden = stream.child("w").normal((width, inputs)) * 2
    net = TwoLayer(hidden, stream.child("b").normal(width), stream.child("u").normal(width), 0.3, activation)
    assert net.dtype == np.float64
    X = stream.child("x").normal((rows, inputs))
    y = stream.child("y").normal(rows)
    return net, X, np.sign(y) if loss in ("hinge", "logistic") else y


def mean_loss(net, X, y, loss):
    return float(np.mean(LOSSES[loss].value(net(X), y)))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_finite_differences(activation, loss):
    net, X, y = setting(activation, loss)
    found = gradients(net, X, y, loss)
    assert found.loss == pytest.approx(mean_loss(net, X, y, loss), rel=1e-12)
    h = 1e-6
    for name in ("hidden", "bias", "output"):
        values = getattr(net, name)
        for where in np.ndindex(values.shape):
            up, down = values.copy(), values.copy()
            up[where] += h
            down[where] -= h
            high = mean_loss(net.with_parameters(**{name: up}), X, y, loss)
            low = mean_loss(net.with_parameters(**{name: down}), X, y, loss)
            assert getattr(found, name)[where] == pytest.approx((high - low) / (2 * h), abs=1e-7)
    high = mean_loss(net.with_parameters(offset=net.offset + h), X, y, loss)
    low = mean_loss(net.with_parameters(offset=net.offset - h), X, y, loss)
    assert found.offset == pytest.approx((high - low) / (2 * h), abs=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ["relu", "relu6"])
def test_autograd(activation, loss):
    torch = pytest.importorskip("torch")
    net, X, y = setting(activation, loss)
    names = ("hidden", "bias", "output")
    w, b, u = (torch.tensor(getattr(net, name).copy(), requires_grad=True) for name in names)
    c = torch.tensor(net.offset, dtype=torch.float64, requires_grad=True)
    sigma = torch.relu if activation == "relu" else torch.nn.functional.relu6
    f, target = sigma(torch.tensor(X) @ w.T + b) @ u + c, torch.tensor(y)
    torch_loss = {
        "hinge": lambda: torch.clamp(1 - target * f, min=0),
        "logistic": lambda: -torch.nn.functional.logsigmoid(target * f),
        "square": lambda: (f - target) ** 2 / 2,
        "absolute": lambda: torch.abs(f - target),
    }[loss]().mean()
    torch_loss.backward()
    found = gradients(net, X, y, loss)
    assert found.loss == pytest.approx(torch_loss.item(), rel=1e-12)
    for mine, theirs in zip(found[:4], (w, b, u, c), strict=True):
        assert np.allclose(mine, theirs.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_conventions_at_the_kinks():
    one = np.array([1.0])
    assert LOSSES["hinge"].slope(one, one) == 0
    assert LOSSES["hinge"].slope(np.array([0.999]), one) == -1
    assert LOSSES["absolute"].slope(one, one) == 0
    assert LOSSES["logistic"].value(np.array([-1e4]), one) == pytest.approx(1e4)
    assert LOSSES["logistic"].slope(np.array([1e4]), one) == 0


def test_active_pairs_are_counted():
    net = init.dense()(6, 9, seed=1)
    X = Stream(1, "x").sign_rows(11, 6)
    assert gradients(net, X, np.ones(11)).active_pairs == net.active(X).indices.size


def test_bad_arguments():
    net = init.dense()(3, 4, seed=0)
    with pytest.raises(ValueError, match=r"X must be a table of shape \(rows, 3\); got shape \(2, 5\)"):
        gradients(net, np.ones((2, 5)), np.ones(2))
    with pytest.raises(ValueError, match="y must be a vector of 2 labels"):
        gradients(net, np.ones((2, 3)), np.ones(3))
    with pytest.raises(ValueError, match="loss must be one of 'hinge', 'logistic', 'square', 'absolute'; got 'l2'"):
        gradients(net, np.ones((2, 3)), np.ones(2), "l2")
