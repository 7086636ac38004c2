"""`fewfire.torch.sparse_init_`: the sparse start in a layer of a PyTorch model.

The folder is not called torch: tests/ is on the path, and where PyTorch is missing it would be imported instead.
"""

import subprocess
import sys

import numpy as np
import pytest

import fewfire as ff
import fewfire.torch as ft


def test_a_layer_starts_as_the_initialiser_draws():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(20, 50)
    state = torch.get_rng_state()
    assert ft.sparse_init_(layer, 2, seed=3) is layer
    assert torch.equal(torch.get_rng_state(), state)
    drawn = ff.networks.init.sparse(2)(20, 50, 3)
    np.testing.assert_array_equal(layer.weight.detach().numpy(), drawn.hidden.astype(np.float32))
    np.testing.assert_array_equal(layer.bias.detach().numpy(), drawn.bias.astype(np.float32))
    assert layer.weight.requires_grad and layer.weight.is_leaf
    double = ft.sparse_init_(torch.nn.Linear(20, 50, bias=False, dtype=torch.float64), 2, seed=3)
    assert double.bias is None and torch.equal(double.weight, layer.weight.double())


def test_errors_name_layer_and_range():
    torch = pytest.importorskip("torch")
    with pytest.raises(ff.InvalidArgument) as caught:
        ft.sparse_init_(torch.nn.ReLU(), 2)
    assert str(caught.value) == "linear must be a torch.nn.Linear; got a ReLU. Remedy: pass one layer of the model."
    with pytest.raises(ff.InvalidArgument, match="s must be an integer of at least 1 and at most 4; got 5"):
        ft.sparse_init_(torch.nn.Linear(4, 3), 5)


def test_without_torch_the_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ff.MissingDependency) as caught:
        ft.sparse_init_(object(), 2)
    assert str(caught.value) == (
        "fewfire.torch.sparse_init_ needs the package 'torch', which is not installed. "
        "Remedy: pip install 'fewfire[torch]'."
    )


def test_torch_is_loaded_by_the_call_alone():
    script = "import sys, fewfire, fewfire.torch as ft; assert fewfire.torch is ft; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
