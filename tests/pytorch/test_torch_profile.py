"""`fewfire.torch.profile`: every number against brute force on all activations at once."""

import json

import numpy as np
import pytest

import fewfire as ff
import fewfire.torch as ft

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402

from fewfire.torch import _profile  # noqa: E402

nn, F = torch.nn, torch.nn.functional


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


def test_every_number_by_brute_force():
    model = like.sequential(12, 50)
    with torch.no_grad():
        model[0].bias -= torch.linspace(0, 3, 50)
    batches = [torch.randn(rows, 12) for rows in (40, 7, 33)]
    seen = ft.profile(model, (batch for batch in batches))
    (one,) = seen.blocks
    fires = [(model[0](batch) > 0).numpy() for batch in batches]
    every = np.concatenate(fires)
    assert (seen.batches, one.tokens, one.calls, seen.model) == (3, 80, 3, "Sequential")
    assert one.mean == pytest.approx(every.mean())
    counts = every.sum(axis=1)
    for percent, share in one.percentiles.items():
        assert share == np.percentile(counts, percent, method="inverted_cdf") / 50
    assert one.union == pytest.approx(np.mean([part.any(axis=0).mean() for part in fires]))
    groups = [part[i : i + 16] for part in fires for i in range(0, len(part) - 15, 16)]
    assert one.union_of_16 == pytest.approx(np.mean([group.any(axis=0).mean() for group in groups]))
    per_neuron = np.sort(every.sum(axis=0))[::-1]
    assert one.dead == (per_neuron == 0).sum() > 0
    fewest = next(m for m in range(1, 51) if per_neuron[:m].sum() >= 0.9 * per_neuron.sum())
    assert one.concentration == fewest / 50
    assert one.k == counts.max()
    assert one.exceed_probability == pytest.approx(1 - 0.05 ** (1 / 80))
    net = ff.networks.TwoLayer(*(p.detach().numpy() for p in model[0].parameters()), model[2].weight.detach().numpy().T)
    assert pytest.approx(tuple(net.norms()), rel=1e-6) == (one.W, one.B)
    assert one.k == net.activity(torch.cat(batches).numpy()).max_active
    assert set(one.seconds) == {1, 16} and one.gain(1) > 0 and one.gain(2) is None
    assert model.training and not any(module._forward_hooks for module in model.modules())


def test_gates_decide_and_smooth_blocks_are_counted_by_their_activations():
    gated = like.LlamaMlp(8, 24)
    x = torch.randn(30, 8)
    (one,) = ft.profile(gated, [x], gains=False).blocks
    assert one.mean == pytest.approx(float((gated.gate_proj(x) > 0).double().mean()))
    assert (one.W, one.B, one.seconds) == (None, None, {})
    (one,) = ft.profile(like.sequential(8, 24, nn.GELU()), [x]).blocks
    assert one.mean == 1.0 and one.block.reason == "gelu has no exact zeros" and one.seconds == {}
    shifted = like.sequential(8, 24, like.Shifted())
    (one,) = ft.profile(shifted, [x], gains=False).blocks
    assert one.mean == pytest.approx(float((shifted[0](x) > 0.25).double().mean()))
    assert (
        pytest.approx(float((shifted[2].weight.abs().max() * (shifted[0].bias - 0.25).abs().max()).detach())) == one.B
    )


@pytest.mark.parametrize("kind", ["drelu", "reglu", "relu6", "opt", "conv1d", "threshold"])
def test_gains_are_measured_for_every_form(kind):
    model = {
        "drelu": lambda: like.LlamaMlp(8, 24, F.relu, True),
        "reglu": lambda: like.LlamaMlp(8, 24),
        "relu6": lambda: like.sequential(8, 24, nn.ReLU6()),
        "opt": lambda: like.OptLayer(8, 24),
        "conv1d": lambda: like.GptMlp(8, 24),
        "threshold": lambda: like.sequential(8, 24, like.FatRelu(0.25)),
    }[kind]()
    strides = [p.stride() for p in model.parameters()]
    (one,) = ft.profile(model, [torch.randn(3, 8)]).blocks
    assert set(one.seconds) == {1} and one.union_of_16 is None  # no 16 rows were seen
    (one,) = ft.profile(model, [torch.randn(16, 8)]).blocks
    assert set(one.seconds) == {1, 16} and one.union_of_16 == one.union
    assert [p.stride() for p in model.parameters()] == strides


def test_many_blocks_are_measured_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr("fewfire.torch._timing.MOST_BYTES", 4 * 24 * 16 * 2)
    model = nn.Sequential(*(like.sequential(8, 24) for _ in range(5)))
    assert all(set(one.seconds) == {1, 16} for one in ft.profile(model, [torch.randn(20, 8)]).blocks)


def test_dead_and_alive_layers():
    for bias, share, dead in ((-1e6, 0.0, 24), (1e6, 1.0, 0)):
        model = like.sequential(8, 24)
        with torch.no_grad():
            model[0].bias += bias
        (one,) = ft.profile(model, [torch.randn(9, 8)], gains=False).blocks
        assert (one.mean, one.union, one.dead, one.k) == (share, share, dead, round(24 * share))
        assert one.concentration == pytest.approx(share * 22 / 24)  # 22 of 24 equals make 90%


def test_a_sparse_model_is_profiled_as_it_is():
    model = like.sequential(8, 24).eval()
    x = [torch.randn(30, 8)]
    dense = ft.profile(model, x, gains=False)
    ft.sparsify(model, x, dense_above=100)
    forward = model.forward
    assert ft.profile(model, x, gains=False) == dense
    assert model.forward is forward


def test_the_table_and_the_plain_data():
    model = nn.Sequential(like.sequential(8, 24), like.OptLayer(8, 24))
    seen = ft.profile(model, [torch.randn(30, 8)])
    heads, first, second = seen.rows()
    assert heads[:4] == ("block", "shape", "activation", "fire")
    assert first[:3] == ("0", "8→24→8", "relu") and second[0] == "1[fc1, fc2]"
    assert str(seen).splitlines()[0].split() == " ".join(heads).split()
    data = json.loads(json.dumps(seen.to_dict(), allow_nan=False))
    assert data["blocks"][1]["block"]["layers"] == ["1.fc1", "1.fc2"]
    sparse, dense = seen.seconds
    assert data["gain"] == pytest.approx(seen.gain) and 0 < sparse <= dense and seen.gain == dense / sparse
    assert data["blocks"][0]["gains"]["16"] == pytest.approx(seen.blocks[0].gain(16))
    assert data["blocks"][0]["percentiles"]["50"] == seen.blocks[0].percentiles[50]


def test_only_so_many_batches_are_taken():
    taken = []

    def batches():
        while True:
            taken.append(1)
            yield torch.randn(2, 8)

    assert ft.profile(like.sequential(8, 24), batches(), gains=False, max_batches=4).batches == 4
    assert len(taken) == 4


def test_errors():
    with pytest.raises(ff.InvalidArgument) as caught:
        ft.profile(nn.Linear(8, 3), [torch.randn(2, 8)])
    assert str(caught.value) == (
        "model must hold an MLP block: Linear, an activation, Linear, with or without a gate; got a model without. "
        "Remedy: check that the batches reach its MLP blocks."
    )
    with pytest.raises(ff.InvalidArgument, match="batches must hold at least one batch; got none"):
        ft.profile(like.sequential(8, 24), [])
    with pytest.raises(ff.InvalidArgument, match="batches must be an iterable of what the model is called with"):
        ft.profile(like.sequential(8, 24), torch.randn(2, 8))
    with pytest.raises(ff.InvalidArgument, match="model must be a torch.nn.Module; got a int"):
        ft.profile(3, [])
    with pytest.raises(ff.InvalidArgument, match="model must be on the CPU"):
        ft.profile(like.sequential(8, 24).to("meta"), [torch.randn(2, 8)])
    with pytest.raises(ff.InvalidArgument, match="max_batches must be an integer of at least 1; got 0"):
        ft.profile(like.sequential(8, 24), [torch.randn(2, 8)], max_batches=0)


def test_concentration():
    assert _profile._concentration(np.array([0, 0, 0])) == 0.0
    assert _profile._concentration(np.array([9, 1, 0, 0])) == 0.25
    assert _profile._concentration(np.array([8, 2, 0, 0])) == 0.5
