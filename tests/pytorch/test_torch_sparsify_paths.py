"""Which path a sparse model takes, what it refuses, how the choice is made, and that a failure changes nothing."""

import copy
import sys

import pytest

import fewfire as ff
import fewfire.torch as ft

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402

from fewfire.torch import _forwards, _sparsify  # noqa: E402

nn, F = torch.nn, torch.nn.functional
ALWAYS = sys.maxsize


def test_the_dense_path_is_taken_where_it_should_be(counted):
    model = like.T5Dense(8, 24).eval()
    ft.sparsify(model, dense_above=6)
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        model(x)
        assert len(counted) == 1
        dense = [torch.randn(7, 8), torch.randn(0, 8)]
        for rows in dense:
            assert torch.equal(model(rows), like.T5Dense.forward(model, rows))
        torch.func.vmap(model)(x)
        handle = model.act.register_forward_hook(lambda *_: None)  # hooks inside are called, so it is run as it is
        model(x)
        handle.remove()
        model.train()
        model(x)
        model.eval()
        with torch.autocast("cpu", torch.bfloat16):
            assert model(x).dtype == torch.bfloat16
        assert len(counted) == 1
        assert model.double()(x.double()).dtype == torch.float64 and len(counted) == 1
        with pytest.raises(RuntimeError):  # as a dense model reports it
            model(x)
        model.float()(x)
    assert len(counted) == 2


def test_a_hook_on_the_first_layer_sees_all_scores(counted):
    model = like.OptLayer(8, 24).eval()
    ft.sparsify(model, dense_above=ALWAYS)
    seen = []
    model.fc1.register_forward_hook(lambda _module, _args, z: seen.append(z))
    x = torch.randn(5, 8)
    with torch.no_grad():
        model(x)
        assert torch.equal(seen[0], F.linear(model.norm(x), model.fc1.weight, model.fc1.bias))
    assert [type(forward).__name__ for forward in counted] == ["DownForward"]


def test_an_inlined_gate_is_cut_on_both_sides():
    class Inlined(like.LlamaMlp):
        def forward(self, x):
            return x + super().forward(x)

    for both in (False, True):
        model = Inlined(8, 24, F.relu, both).eval()
        x = torch.randn(5, 8)
        with torch.no_grad():
            dense = model(x)
            report = ft.sparsify(model, [x])
            ft.densify(model)
            assert len(ft.sparsify(model, [x], dense_above=ALWAYS).replaced) == 1
            torch.testing.assert_close(model(x), dense)
        assert 1 in report.blocks[0].seconds and len(list(_sparsify.sparse_forwards(model))) == 2 + both


def test_gradients_flow_through_the_dense_path(counted):
    torch.manual_seed(0)
    model = like.sequential(8, 24)
    plain = copy.deepcopy(model)
    ft.sparsify(model, dense_above=ALWAYS)
    x = torch.randn(5, 8)
    for net in (model, plain):
        net(x).square().sum().backward()
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    assert not counted
    model.eval().requires_grad_(False)
    model(x)
    assert len(counted) == 1  # nothing requires a gradient
    model(x.requires_grad_()).sum().backward()
    assert len(counted) == 1 and x.grad is not None


def test_errors_instead_of_the_dense_path():
    model = like.sequential(8, 24).eval()
    ft.sparsify(model, dense_above=ALWAYS, gradients="error", unsupported="error")
    with pytest.raises(ff.InvalidArgument) as caught:
        model(torch.randn(2, 8))
    assert str(caught.value) == (
        "a sparse block has no sparse path here: gradients are wanted, and gradients='error' was asked for. "
        "Remedy: use torch.no_grad() or inference_mode(), or sparsify with gradients='dense'."
    )
    only = "only float32 on the CPU and bfloat16, float16, float32 on a GPU"
    with torch.no_grad():
        with pytest.raises(ff.InvalidArgument, match=only + " are supported, and unsupported='error'"):
            model(torch.randn(2, 8).double())
        with (
            pytest.raises(ff.InvalidArgument, match="autocast changes the dtype"),
            torch.autocast("cpu", torch.bfloat16),
        ):
            model(torch.randn(2, 8))
        with pytest.raises(ff.InvalidArgument, match=only):
            model.double()(torch.randn(2, 8))


def test_inputs_of_the_wrong_kind_are_refused():
    model = like.sequential(8, 24).eval()
    ft.sparsify(model, dense_above=ALWAYS)
    with pytest.raises(ff.InvalidArgument) as caught:
        model(torch.ones(2, 8, dtype=torch.int64))
    assert str(caught.value) == (
        "x must hold floating-point numbers for a sparse block; got a tensor of int64. Remedy: call x.float() first."
    )
    with torch.no_grad(), pytest.raises(ff.InvalidArgument) as caught:
        model(torch.ones(2, 9))
    assert str(caught.value) == (
        "x must have 8 columns for a sparse block; got shape (2, 9). Remedy: pass what the dense layer would take."
    )
    with torch.no_grad(), pytest.raises(TypeError):
        model(torch.ones(2, 8), 3)


def snapshot(model):
    tensors = {name: (id(p), p.data_ptr(), p.stride(), p.clone()) for name, p in model.named_parameters()}
    return tensors, [(type(module), sorted(vars(module))) for module in model.modules()]


def same_snapshot(first, second):
    assert first[1] == second[1]
    for name, (*marks, value) in first[0].items():
        assert marks[0] == second[0][name][0] and marks[2] == second[0][name][2]
        assert torch.equal(value, second[0][name][3])


@pytest.mark.parametrize("kind", ["fused", "split"])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_failure_leaves_the_model_untouched(monkeypatch, kind, after):
    layer = {"fused": lambda: like.sequential(8, 24), "split": lambda: nn.TransformerEncoderLayer(8, 2, 24)}[kind]
    model = nn.Sequential(layer(), layer(), layer(), layer())
    before, fast = snapshot(model), [getattr(part, "activation_relu_or_gelu", None) for part in model]
    built, calls = _forwards.SparseForward.kernel, []

    def failing(self):
        calls.append(self)
        if len(calls) > 2 * after:
            raise MemoryError("no room for codes")
        return built(self)

    monkeypatch.setattr(_forwards.SparseForward, "kernel", failing)
    with pytest.raises(MemoryError, match="no room for codes"):
        ft.sparsify(model, dense_above=ALWAYS)
    same_snapshot(before, snapshot(model))
    assert [getattr(part, "activation_relu_or_gelu", None) for part in model] == fast


def test_models_that_cannot_be_made_sparse(monkeypatch):
    rule = (
        "model must hold an MLP block whose zeros are exact: Linear, ReLU, Linear, with or without a gate; got a model"
    )
    for model, end in (
        (nn.Linear(3, 4), " without a block. Remedy: pass batches, so that the model can be watched running."),
        (like.sequential(8, 24, nn.GELU()), " whose 1 blocks cannot be used: gelu has no exact zeros. Remedy: "),
    ):
        before = snapshot(model)
        with pytest.raises(ff.InvalidArgument) as caught:
            ft.sparsify(model)
        assert str(caught.value).startswith(rule + end)
        same_snapshot(before, snapshot(model))
    with pytest.raises(
        ff.InvalidArgument,
        match="model must be on the CPU or a CUDA device; got a parameter 0.weight on meta. Remedy: ",
    ):
        ft.sparsify(like.sequential(8, 24).to("meta"))
    with pytest.raises(ff.InvalidArgument, match="model must be a torch.nn.Module; got a function"):
        ft.sparsify(lambda x: x)
    twice = like.sequential(8, 24)
    ft.sparsify(twice, dense_above=3)
    with pytest.raises(ff.InvalidArgument, match="must not be sparse already.*call densify first"):
        ft.sparsify(twice)
    for options, text in (
        ({"dense_above": 0}, "dense_above must be an integer of at least 1"),
        ({"gradients": "none"}, "gradients must be one of 'dense', 'error'; got 'none'"),
        ({"unsupported": 1}, "unsupported must be one of 'dense', 'error'; got 1"),
        ({"threads": 0}, "threads must be an integer of at least 1"),
    ):
        with pytest.raises(ff.InvalidArgument, match=text):
            ft.sparsify(like.sequential(8, 24), **options)


def test_reasons_are_listed_block_by_block():
    tied = nn.Sequential(like.sequential(8, 24), like.sequential(8, 24))
    tied[1][2].weight.data = tied[0][2].weight.data  # two parameters, one memory
    half = like.sequential(8, 24).to(torch.bfloat16)
    model = nn.ModuleList([tied, half, like.sequential(8, 24), like.sequential(8, 24, nn.SiLU())])
    report = ft.sparsify(model, dense_above=4)
    told = str(report).splitlines()
    assert told[0].startswith("1 of 5 blocks sparse, 0.0 MiB on top of the weights, calibrated on made-up rows")
    assert told[1] == "  0.0: dense, because of 0.0.2: its weight shares memory with another parameter"
    assert told[3] == "  1: dense, because of 1.0: its weight is bfloat16, not float32"
    assert told[4].startswith("  2: fused, relu, ") and told[4].endswith(" fire, sparse for up to 4 rows")
    assert told[5] == "  3[0, 2]: dense, because silu has no exact zeros"
    assert report.to_dict()["blocks"][3]["dense_above"] == 4


def test_low_precision_is_left_to_the_dense_path():
    model = nn.ModuleList([like.sequential(8, 24).to(torch.float64), like.sequential(8, 24)])
    batch = [torch.randn(5, 8)]

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = model

        def forward(self, x):
            return self.parts[0](x.double()).float() + self.parts[1](x)

    report = ft.sparsify(Both().eval(), batch, dense_above=3)
    reasons = [entry.block.reason for entry in report.blocks]
    assert reasons == ["of parts.0.0: its weight is float64, not float32", None]


def test_the_choice_between_the_paths_is_measured(monkeypatch):
    """With times made up: sparse is kept up to the rows where it is faster, and taken back where it never is."""
    model = nn.Sequential(like.sequential(8, 24), like.sequential(8, 24), like.sequential(8, 24)).eval()
    limits = iter([])

    def times(candidates, device):
        rows = next(limits)
        speeds = {3: [8, 0, ALWAYS], 2: [8, ALWAYS], 1: [ALWAYS]}[len(candidates)]
        return [[1.0 if rows <= most else 2.0, 1.5] for most in speeds]

    limits = iter(_sparsify.SIZES)
    monkeypatch.setattr(_sparsify, "in_turn", times)
    report = ft.sparsify(model, [torch.randn(70, 8)])
    assert [entry.dense_above for entry in report.blocks] == [8, None, 64]
    assert report.blocks[1].block.reason == _sparsify.FASTER_DENSE and report.blocks[1].extra_bytes == 0
    assert "forward" not in vars(model[1]) and model[1][2].weight.is_contiguous()
    assert [forward.policy.dense_above for forward in _sparsify.sparse_forwards(model)] == [8, 64]
    assert report.blocks[0].seconds == {1: (1.0, 1.5), 2: (1.0, 1.5), 4: (1.0, 1.5), 8: (1.0, 1.5), 16: (2.0, 1.5)}


def test_measured_in_earnest():
    report = ft.sparsify(like.sequential(8, 24).eval(), [torch.randn(5, 8)])
    assert 1 in report.blocks[0].seconds and all(pair > (0, 0) for pair in report.blocks[0].seconds.values())


def test_no_more_rows_are_measured_than_were_seen(monkeypatch):
    """A row repeated would fire the same neurons again, and flatter the sparse path."""
    monkeypatch.setattr(_sparsify, "in_turn", lambda candidates, **_: [[1.0, 2.0]] * len(candidates))
    for rows, most in ((1, 1), (5, 4), (40, 32)):
        assert ft.sparsify(like.sequential(8, 24).eval(), [torch.randn(rows, 8)]).blocks[0].dense_above == most
