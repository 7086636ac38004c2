"""Training on the neurons that fire alone is plain SGD: the same weights up to rounding, other rows not touched."""

from __future__ import annotations

import copy
import pickle
from unittest.mock import patch

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fewfire.torch as ft  # noqa: E402
from fewfire._errors import InvalidArgument  # noqa: E402
from fewfire.torch import _kernel  # noqa: E402
from fewfire.torch._kernel import SparseUp  # noqa: E402

RATE = 0.05


def layers(inputs=40, width=300, outputs=30, bias=True, shift=-1.0, seed=0):
    """Two layers, of which some neurons fire on normal rows."""
    torch.manual_seed(seed)
    first, second = torch.nn.Linear(inputs, width, bias=bias), torch.nn.Linear(width, outputs, bias=bias)
    with torch.no_grad():
        first.weight.normal_(std=inputs**-0.5)
        if bias:
            first.bias.fill_(shift)
    return first, second


def dense_weights(first, second, batches, kind):
    """The parameters after plain SGD, and the gradients of the inputs."""
    model = torch.nn.Sequential(copy.deepcopy(first), torch.nn.ReLU(), copy.deepcopy(second)).to(kind)
    optimiser, found = torch.optim.SGD(model.parameters(), lr=RATE), []
    for x, g in batches:
        own = x.to(kind, copy=True).requires_grad_()
        model(own).backward(g.to(kind))
        optimiser.step()
        optimiser.zero_grad()
        found.append(own.grad)
    return [*model.parameters(), *found]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1,), (7,), (2, 3)])
def test_steps_are_those_of_plain_sgd(bias, shape):
    first, second = layers(bias=bias)
    batches = [(torch.randn(*shape, 40), torch.randn(*shape, 30)) for _ in range(12)]
    exact, narrow = (dense_weights(first, second, batches, kind) for kind in (torch.float64, torch.float32))
    block = ft.SparseTrainingBlock(first, second, learning_rate=RATE)
    found = []
    for x, g in batches:
        own = x.clone().requires_grad_()
        block(own).backward(g)
        found.append(own.grad)
    for ours, theirs, truth in zip([*block.parameters(), *found], narrow, exact, strict=True):
        assert ours.shape == truth.shape
        assert (ours.double() - truth).abs().max() <= 4 * (theirs.double() - truth).abs().max() + 1e-6


def test_rows_of_neurons_that_do_not_fire_stay_to_the_bit():
    first, second = layers(shift=-2.0)
    x = torch.randn(2, 40)
    fires = (first(x) > 0).any(0)
    before = [first.weight.detach().clone(), second.weight.detach().clone()]
    ft.SparseTrainingBlock(first, second, learning_rate=RATE)(x).backward(torch.randn(2, 30))
    assert 0 < fires.sum() < 100
    assert torch.equal((first.weight != before[0]).any(1), fires)
    assert torch.equal((second.weight != before[1]).any(0), fires)


def test_the_rest_of_a_model_is_trained_by_its_optimiser():
    first, second = layers(outputs=40)
    head = torch.nn.Linear(40, 1)
    model = torch.nn.Sequential(ft.SparseTrainingBlock(first, second, learning_rate=RATE), head)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    x, y = torch.randn(64, 40), torch.randn(64, 1)
    losses = []
    for _ in range(30):
        loss = ((model(x) - y) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.6 * losses[0]
    assert first.weight.grad is None
    model.eval()
    with torch.no_grad():
        dense = head(second(torch.relu(first(x))))
        torch.testing.assert_close(model(x), dense)


def test_changes_from_outside_are_noticed():
    first, second = layers()
    block = ft.SparseTrainingBlock(first, second, learning_rate=RATE).eval()
    x = torch.randn(5, 40)
    with torch.no_grad():
        first.weight.neg_()
        torch.testing.assert_close(block(x), second(torch.relu(first(x))))
        first.bias.data.add_(0.5)
        block.refresh()
        torch.testing.assert_close(block(x), second(torch.relu(first(x))))


def test_copies_and_pickles_train_by_themselves():
    block = ft.SparseTrainingBlock(*layers(), learning_rate=RATE)
    for twin in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        x, g = torch.randn(3, 40), torch.randn(3, 30)
        before = copy.deepcopy(block.state_dict())
        twin(x).backward(g)
        assert all(torch.equal(value, before[name]) for name, value in block.state_dict().items())
        assert not torch.equal(twin.first.weight, block.first.weight)
        torch.testing.assert_close(twin.eval()(x), twin.second(torch.relu(twin.first(x))))


def test_one_backward_pass_per_call():
    block = ft.SparseTrainingBlock(*layers(), learning_rate=RATE)
    one, other = block(torch.randn(1, 40)), block(torch.randn(1, 40))
    one.sum().backward(retain_graph=True)
    for late in (one, other):
        with pytest.raises(RuntimeError, match="has made a step since it computed that output. Remedy: call it once"):
            late.sum().backward()


def test_divergence_is_reported_and_nothing_is_written():
    first, second = layers()
    block = ft.SparseTrainingBlock(first, second, learning_rate=3e38)
    before = [p.detach().clone() for p in block.parameters()]
    with pytest.raises(FloatingPointError, match="no longer finite. Remedy: lower learning_rate"):
        block(torch.randn(3, 40)).backward(torch.full((3, 30), 1e20))
    assert all(torch.equal(old, new) for old, new in zip(before, block.parameters(), strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda a, b: (torch.nn.ReLU(), b), "first must be a torch.nn.Linear"),
        (lambda a, b: (a.double(), b), "first must be float32 on the CPU"),
        (lambda a, b: (a, torch.nn.Linear(7, 3)), "second must take the 300 outputs of first"),
    ],
)
def test_wrong_layers_are_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        ft.SparseTrainingBlock(*arguments(*layers()), learning_rate=RATE)


def test_wrong_numbers_are_refused():
    first, second = layers()
    with pytest.raises(InvalidArgument, match="learning_rate"):
        ft.SparseTrainingBlock(first, second, learning_rate=-1.0)
    block = ft.SparseTrainingBlock(first, second, learning_rate=RATE)
    for x in (torch.zeros(3, 41), torch.zeros(3, 40, dtype=torch.float64)):
        with pytest.raises(InvalidArgument, match=r"x must be float32 of shape \(\.\.\., 40\)"):
            block(x)
    with torch.no_grad():
        first.weight[0, 0] = float("nan")
    with pytest.raises(InvalidArgument, match="first must have finite weights"):
        ft.SparseTrainingBlock(first, second, learning_rate=RATE)


@pytest.mark.parametrize("least", [0, 1 << 62])  # inputs from which there are residual codes
def test_recoded_rows_are_as_if_built_with_them(core, least):
    draw = np.random.default_rng(0)
    weight, bias = draw.normal(size=(500, 200)).astype(np.float32), np.full(500, -20, dtype=np.float32)
    with patch.object(_kernel, "_RESIDUAL_FROM", least):
        layer = SparseUp(weight, bias)
    changed = draw.choice(500, 60, replace=False)
    weight[changed] = draw.normal(size=(60, 200)) * 10.0 ** draw.uniform(-30, 20, size=(60, 1))
    bias[changed[:5]] = np.inf
    weight[changed[5:9], 3] = np.nan
    layer.recode(changed, threads=2)
    x = draw.normal(size=(6, 200)).astype(np.float32)
    with patch.object(_kernel, "_RESIDUAL_FROM", least):
        fresh = SparseUp(weight, bias)
    for ours, theirs in zip(layer.firing(x), fresh.firing(x), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert layer._native.firing(x, 1)[3] == fresh._native.firing(x, 1)[3]  # nothing more is left open
