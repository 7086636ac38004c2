"""Sparse models under torch.compile: one opaque operator per forward, whole graphs, the same choices as in eager mode."""

import copy

import pytest

import fewfire as ff
import fewfire.torch as ft

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402

from fewfire.torch import _forwards, _sparsify  # noqa: E402

nn = torch.nn


class Mixed(nn.Module):
    """A fused block, a split one, and a gate."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = like.sequential(8, 24), like.OptLayer(8, 24), like.LlamaMlp(8, 24)

    def forward(self, x):
        return self.third(self.second(x + self.first(x)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    torch._dynamo.reset()
    made = Mixed().eval()
    ft.sparsify(made, [torch.randn(5, 8)], dense_above=20)
    yield made
    torch._dynamo.reset()


def graph_of(model, x):
    """The operators of the one graph that a call compiles to."""
    seen = []

    def backend(graph, _example):
        seen.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return graph

    torch.compile(model, fullgraph=True, backend=backend)(x)
    assert len(seen) == 1
    return seen[0]


def test_a_whole_graph_with_one_operator_per_forward(model):
    with torch.no_grad():
        called = graph_of(model, torch.randn(5, 8))
        assert sum("sparse_forward" in name for name in called) == 4
        torch._dynamo.reset()
        assert not any("sparse_forward" in name for name in graph_of(model, torch.randn(50, 8)))  # many rows
    torch._dynamo.reset()
    assert not any("sparse_forward" in name for name in graph_of(model, torch.randn(5, 8)))  # gradients


def test_compiled_and_eager_agree(model):
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
        model.first[0].weight.mul_(2)  # seen by the operator as by the module
        torch.testing.assert_close(compiled(x), model(x))
    with torch.inference_mode():
        torch.testing.assert_close(compiled(x), model(x))
    compiled(x).sum().backward()
    assert model.third.gate_proj.weight.grad is not None


def test_copies_compile_to_operators_of_their_own(model):
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.first[0].weight.zero_()
        x = torch.randn(5, 8)
        for net in (model, other):
            torch.testing.assert_close(torch.compile(net, fullgraph=True, backend="aot_eager")(x), net(x))


def test_the_operator_keeps_torchs_rules(model):
    forward = next(iter(_sparsify.sparse_forwards(model)))
    arguments = (torch.randn(5, 8), forward._handle, forward.outputs)
    torch.library.opcheck(_forwards._operator, arguments)
    with pytest.raises(ff.InvalidArgument, match="number -1 must be alive in this process; it is not"):
        _forwards._operator(torch.randn(5, 8), -1, 8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning")
def test_inductor(model):
    with torch.no_grad():
        x = torch.randn(5, 8)
        torch.testing.assert_close(torch.compile(model, fullgraph=True)(x), model(x))
