"""`fewfire.torch.sparsify`: equal to dense up to rounding, for every kind of block, and the same model otherwise."""

import copy
import pickle
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fewfire.torch as ft

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402

from fewfire.torch import _sparsify  # noqa: E402

nn, F = torch.nn, torch.nn.functional
ALWAYS = sys.maxsize

KINDS = {
    "relu": lambda n, w: like.sequential(n, w, outputs=5),
    "no-bias": lambda n, w: like.sequential(n, w, bias=False),
    "shifted": lambda n, w: like.sequential(n, w, like.Shifted()),
    "threshold": lambda n, w: like.sequential(n, w, like.FatRelu(0.125)),
    "relu2": lambda n, w: like.sequential(n, w, like.Squared()),
    "reglu": lambda n, w: like.LlamaMlp(n, w),
    "drelu": lambda n, w: like.LlamaMlp(n, w, F.relu, True),
    "conv1d": lambda n, w: like.GptMlp(n, w),
    "t5": lambda n, w: like.T5Dense(n, w),
}


@settings(max_examples=60)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    inputs=st.integers(1, 40),
    width=st.integers(1, 70),
    rows=st.integers(1, 9),
    bias=st.sampled_from([0.0, -1.0, 2.0, -1e6]),
    scale=st.sampled_from([1.0, 1e-20, 1e10]),
    seed=st.integers(0, 2**31),
)
def test_blocks_agree_with_float64(kind, inputs, width, rows, bias, scale, seed):
    torch.manual_seed(seed)
    model = KINDS[kind](inputs, width).eval()
    first = next(m for m in model.modules() if isinstance(m, nn.Linear | like.Conv1D))
    with torch.no_grad():
        first.weight *= scale
        if first.bias is not None:
            first.bias += bias  # from all dead to all alive
    x = torch.randn(2, rows, inputs).transpose(0, 1)  # not contiguous
    (entry,) = ft.sparsify(model, [torch.randn(50, inputs)], dense_above=ALWAYS).blocks
    value, bound = like.oracle(entry.block, model, x)
    with torch.no_grad():
        given = model(x)
    assert given.shape == value.shape and given.dtype == torch.float32
    assert bool(((given.double() - value).abs() <= bound + 1e-37).all())


@pytest.mark.parametrize("kind", ["opt", "bert", "encoder", "relu6", "inlined-threshold"])
def test_inlined_blocks_agree_with_dense(kind, counted):
    class Jump(like.Leaky):
        def forward(self, x):
            return x + self.fc2(F.threshold(self.fc1(x), 0.25, 0.0))

    torch.manual_seed(1)
    model = {
        "opt": lambda: like.OptLayer(16, 48),
        "bert": lambda: like.BertLayer(16, 48),
        "encoder": lambda: nn.TransformerEncoderLayer(16, 2, 48, batch_first=True),
        "relu6": lambda: like.sequential(16, 48, nn.ReLU6()),
        "inlined-threshold": lambda: Jump(16, 48),
    }[kind]().eval()
    x = 3 * torch.randn(4, 7, 16)
    with torch.inference_mode():
        dense = model(x)
        report = ft.sparsify(model, [x], dense_above=ALWAYS)
        assert report.replaced[0].form == "split"
        torch.testing.assert_close(model(x), dense, rtol=1e-4, atol=1e-5)
        assert len(counted) == 2
        assert ft.densify(model) == 2
        assert torch.equal(model(x), dense) and len(counted) == 2


def deep():
    """Blocks among the members of one sequence; the third shares a layer with the second."""
    torch.manual_seed(1)
    first = [nn.Flatten(), nn.Linear(16, 48), nn.ReLU(), nn.Dropout(0.5), nn.Linear(48, 20), nn.LayerNorm(20)]
    return nn.Sequential(*first, nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 9), nn.ReLU(), nn.Linear(9, 2))


def test_members_of_a_sequence_are_computed_at_once(counted):
    model = deep()
    x = torch.randn(5, 4, 4)
    model.eval()
    with torch.no_grad():
        dense = model(x)
        report = ft.sparsify(model, [x], dense_above=ALWAYS)
        assert [entry.form for entry in report.blocks] == ["fused", "fused", None]
        assert report.blocks[0].block.label == "[1, 4]" and report.blocks[0].block.members == ("1", "2", "3", "4")
        assert report.blocks[2].block.reason == "its layer 8 belongs to the block before it"
        for net in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            counted.clear()
            torch.testing.assert_close(net(x), dense)
            assert len(counted) == 2
            net.train()
            net(x)
            net.eval()
            net[3].register_forward_hook(lambda *_: None)
            net(x)
            assert len(counted) == 3  # dropout runs in training; a hook inside is called
        counted.clear()
        other = copy.deepcopy(model)
        other[5] = nn.Identity()
        other(x)
        assert len(counted) == 1  # the other members are free to change
        other[7] = nn.GELU()
        torch.testing.assert_close(other(x), nn.Sequential.forward(other, x))
        assert len(counted) == 1
        compiled = torch.compile(model, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(x), dense)
        torch._dynamo.reset()
        assert ft.profile(model, [x], gains=False).blocks[0].tokens == 5 and len(counted) == 2
        assert ft.densify(model) == 2 and "forward" not in vars(model)
        assert torch.equal(model(x), dense)


def test_one_of_several_members_is_taken_back(monkeypatch):
    model = deep().eval()
    monkeypatch.setattr(_sparsify, "in_turn", lambda candidates, **_: [[1.0, 0.5], [1.0, 2.0]][-len(candidates) :])
    report = ft.sparsify(model, [torch.randn(5, 4, 4)])
    assert [entry.form for entry in report.blocks] == [None, "fused", None]
    assert [forward.members for forward in _sparsify.sparse_forwards(model)] == [("6", "7", "8")]
    assert model[4].weight.is_contiguous()


def test_parameters_keep_names_shapes_values_and_memory():
    model = nn.Sequential(like.sequential(8, 24), like.LlamaMlp(8, 24), like.GptMlp(8, 24)).eval()
    before = {name: (value, value.clone()) for name, value in model.named_parameters()}
    state = {name: value.clone() for name, value in model.state_dict().items()}
    classes = [type(module) for module in model.modules()]
    ft.sparsify(model, dense_above=ALWAYS)
    assert [type(module) for module in model.modules()] == classes
    for name, value in model.named_parameters():
        assert value is before[name][0] and torch.equal(value, before[name][1])
    assert model[0][2].weight.t().is_contiguous() and model[1].down_proj.weight.t().is_contiguous()
    assert model[2].c_fc.weight.t().is_contiguous() and model[2].c_proj.weight.is_contiguous()
    assert {name: value.shape for name, value in model.state_dict().items()} == {k: v.shape for k, v in state.items()}
    other = nn.Sequential(like.sequential(8, 24), like.LlamaMlp(8, 24), like.GptMlp(8, 24)).eval()
    other.load_state_dict(model.state_dict())
    x = torch.randn(5, 8)
    with torch.no_grad():
        torch.testing.assert_close(model(x), other(x))


def changed_in_place(model):
    with torch.no_grad():
        model[0].weight.mul_(-2)


def loaded(model):
    model.load_state_dict({name: -value for name, value in model.state_dict().items()})


def assigned(model):
    model.load_state_dict({name: -value for name, value in model.state_dict().items()}, assign=True)


def behind_torchs_back(model):
    model[0].weight.data.neg_()


def replaced(model):
    model[2].weight = nn.Parameter(torch.randn(8, 24))


def stepped(model):
    model(torch.randn(5, 8)).sum().backward()
    torch.optim.SGD(model.parameters(), 1.0).step()


def one_value_and_refresh(model):
    model[0].weight.data[7, 3] += 100
    assert ft.refresh(model) == 1


CHANGES = (changed_in_place, loaded, assigned, behind_torchs_back, replaced, stepped, one_value_and_refresh)


@pytest.mark.parametrize("change", CHANGES, ids=[change.__name__ for change in CHANGES])
def test_changed_weights_are_noticed(change, counted):
    torch.manual_seed(0)
    model = like.sequential(8, 24).eval()
    ft.sparsify(model, dense_above=ALWAYS)
    x = torch.randn(50, 8)
    with torch.no_grad():
        model(x)
        torch.enable_grad()(change)(model)
        torch.testing.assert_close(model(x), nn.Sequential.forward(model, x))
    assert len(counted) == 2
    assert model[2].weight.t().is_contiguous()


def test_copies_and_pickles_are_sparse_and_apart(counted):
    model = nn.Sequential(like.sequential(8, 24), nn.TransformerEncoderLayer(8, 2, 24, batch_first=True)).eval()
    ft.sparsify(model, dense_above=ALWAYS)
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        value = model(x)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            counted.clear()
            assert torch.equal(other(x), value) and len(counted) == 3
            assert all(forward.module is not model[0] for forward in counted)
            other[0][0].weight.zero_()
            assert not torch.equal(other(x), value) and torch.equal(model(x), value)
            assert ft.densify(other) == 3 and len(list(_sparsify.sparse_forwards(model))) == 3


def test_modes_of_inference_do_not_reach_the_weights(counted):
    model, x = like.sequential(8, 24).eval(), torch.randn(5, 8)
    with torch.inference_mode():
        ft.sparsify(model, [x], dense_above=ALWAYS)
        model(x)
        model.load_state_dict({name: -value for name, value in model.state_dict().items()})
        model(x)
    model(x).sum().backward()  # weights are still ones that can be trained
    with torch.inference_mode():
        ft.densify(model)
    model(x).sum().backward()
    with torch.inference_mode():
        made = like.sequential(8, 24).eval()
    ft.sparsify(made, [x], dense_above=ALWAYS)
    with torch.inference_mode():
        torch.testing.assert_close(made(x), nn.Sequential.forward(made, x))
    assert len(counted) == 3


def test_many_threads_at_once():
    torch.manual_seed(0)
    model = like.sequential(16, 96).eval()
    ft.sparsify(model, dense_above=ALWAYS)
    inputs = [torch.randn(3, 16) for _ in range(8)]
    wanted = [nn.Sequential.forward(model, x).detach() for x in inputs]
    next(iter(_sparsify.sparse_forwards(model)))._held = None  # all threads find codes missing
    wrong = []

    def work(x, value):
        for _ in range(50):
            with torch.no_grad():
                if not torch.allclose(model(x), value, atol=1e-5):
                    wrong.append(x)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, wanted, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_the_cpp_part_the_reference_serves(without_core, counted):
    model, x = nn.Sequential(like.LlamaMlp(8, 24), like.OptLayer(8, 24)).eval(), torch.randn(5, 8)
    with torch.no_grad():
        dense = model(x)
        assert len(ft.sparsify(model, [x], dense_above=ALWAYS).replaced) == 2
        torch.testing.assert_close(model(x), dense)
    assert len(counted) == 3
