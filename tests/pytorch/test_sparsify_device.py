"""`fewfire.torch.sparsify` on a GPU: equal to float64 up to rounding, for every form and type; copied, moved, chosen."""

import copy
import pickle

import pytest

import fewfire as ff
import fewfire.torch as ft
from fewfire._cuda._device import missing

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402
from device_models import FORMS, INPUTS, UNITS, WIDTH, check, compile_all, made, rows_of  # noqa: E402

from fewfire.torch.cuda import DeviceBlock  # noqa: E402
from fewfire.torch.cuda._device_block import ACTIVATIONS, TYPES  # noqa: E402

nn = torch.nn
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(missing() is not None, reason="needs a GPU")]


@pytest.fixture(scope="module", autouse=True)
def compiled_beforehand():
    if missing() is not None:
        return
    blocks = []
    for dtype in TYPES:
        first, second, factor = torch.zeros(3, WIDTH, INPUTS, dtype=getattr(torch, dtype), device="cuda").unbind()
        blocks += [DeviceBlock(first, None, second, None, activation=kind) for kind in ACTIVATIONS]
        blocks += [DeviceBlock(first, None, second, None, factor=factor, gated=gated) for gated in ("reglu", "drelu")]
    compile_all(blocks)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("form", sorted(FORMS))
def test_one_to_four_rows_agree_with_float64_and_more_are_dense(form, dtype, counted):
    model, dense, entry = made(form, dtype)
    assert entry.form == "fused" and entry.device == "cuda:0" and entry.dense_above == 4
    with torch.inference_mode():
        for batch in (1, 2, 3, 4):
            counted.clear()
            x = rows_of(batch, dtype)
            y = model(x)
            check(y, dense, entry.block, x)
            assert torch.equal(y, model(x)), "the same input gave other bits"
            apart = torch.stack([x, -x], dim=-1)[..., 0]  # not contiguous
            assert not apart.is_contiguous() and torch.equal(model(apart), y)
            assert torch.equal(model(x[None]), y[None])
            assert len(counted) == 4
        counted.clear()
        x = rows_of(5, dtype)
        y = model(x)
        assert not counted and y.shape == (5, INPUTS)
        assert torch.equal(y, type(model).forward(model, x))
        assert model(x[:0]).shape == (0, INPUTS) and not counted


def test_layers_that_are_dead_alive_huge_and_tiny(counted):
    for bias, scale, dtype in (
        *((-1e4, 1.0, dtype) for dtype in TYPES),
        *((1e3, 1.0, dtype) for dtype in TYPES),
        (0.0, 1e30, "float32"),
        (0.0, 1e30, "bfloat16"),
        (0.0, 1e-41, "float32"),
        (0.0, 1e-39, "bfloat16"),
        (0.0, 1e-6, "float16"),
        (0.0, 3e3, "float16"),
    ):
        torch.manual_seed(0)
        model = FORMS["relu"]().eval()
        with torch.no_grad():
            model[0].weight *= scale
            model[0].bias.copy_(model[0].bias * scale + bias)
        model = model.to("cuda", getattr(torch, dtype))
        dense = copy.deepcopy(model).cpu()
        x = rows_of(2, dtype)
        batches = [rows_of(40, dtype)] if bias == 0.0 else None
        (entry,) = ft.sparsify(model, batches, dense_above=4).blocks
        counted.clear()
        with torch.no_grad():
            y = model(x)
        assert len(counted) == 1, (bias, scale, dtype)
        value, bound = like.oracle(entry.block, dense, x.cpu())
        unit = UNITS[dtype]
        fits = value.abs() <= torch.finfo(x.dtype).max  # of half precision's range
        deviation = (y.cpu().double() - value).abs()[fits]
        slack = (bound * (1 + unit) + 1.01 * unit * value.abs())[fits] + 1e-42 + 2.0**-25 * (dtype == "float16")
        assert bool((deviation <= slack).all()), (bias, scale, dtype, float(deviation.max()))
    broken = rows_of(2)
    broken[0, 5] = torch.nan
    model, dense, entry = made()
    with torch.no_grad():
        y = model(broken)
    assert bool(torch.isnan(y[0]).all())
    check(y[1:], dense, entry.block, broken[1:])


def test_weights_that_are_not_finite_stay_dense(counted):
    model, dense, _ = made(unsupported="dense")
    with torch.no_grad():
        model[2].weight[3, 7] = torch.inf
        model(rows_of(1))
        assert not counted
        model[2].weight[3, 7] = 0.0
        dense[2].weight[3, 7] = 0.0
        model(rows_of(1))
        assert len(counted) == 1


def test_copies_pickles_and_state(counted):
    model, dense, entry = made("reglu")
    x = rows_of(2)
    with torch.no_grad():
        value = model(x)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            counted.clear()
            assert torch.equal(other(x), value) and len(counted) == 1
            other.gate_proj.weight.neg_()
            assert not torch.equal(other(x), value) and torch.equal(model(x), value)
        plain = FORMS["reglu"]().eval().to("cuda", torch.bfloat16)
        plain.load_state_dict(model.state_dict())
        torch.testing.assert_close(plain(x), value, rtol=0.05, atol=0.01)
        for assign in (False, True):
            counted.clear()
            model.load_state_dict({name: -tensor for name, tensor in model.state_dict().items()}, assign=assign)
            dense.load_state_dict({name: -tensor for name, tensor in dense.state_dict().items()})
            check(model(x), dense, entry.block, x)
            assert len(counted) == 1
        model.gate_proj.weight.data.neg_()  # behind torch's back, and nothing waits for the device to see it
        dense.gate_proj.weight.data.neg_()
        assert ft.refresh(model) == 1
        check(model(x), dense, entry.block, x)
        assert ft.densify(model) == 1 and model.down_proj.weight.is_contiguous()


def test_moved_models(without_core, counted):
    model, _, _ = made("relu", "float32")
    x = rows_of(2, "float32")
    with torch.no_grad():
        value = model(x)
        model.cpu()
        torch.testing.assert_close(model(x.cpu()), value.cpu())
        with pytest.raises(RuntimeError):  # as a dense model reports it
            model(x)
        model.cuda()
        assert torch.equal(model(x), value)
        assert len(counted) == 3
        half = model.half()
        half(x.half())
        assert len(counted) == 4
        model.bfloat16().cpu()(x.bfloat16().cpu())  # no kernel there
        model.double().cuda()(x.double())
        assert len(counted) == 4
    plain = FORMS["relu"]().eval()
    ft.sparsify(plain, dense_above=8)
    with torch.no_grad():
        plain.cuda()(x)
        assert len(counted) == 5
        plain(rows_of(8, "float32"))
    assert len(counted) == 5  # more than four rows are dense on a GPU


def test_blocks_on_several_devices(without_core, counted):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.near, self.far = FORMS["relu"](), FORMS["relu"]().to(f"cuda:{torch.cuda.device_count() - 1}")

        def forward(self, x):
            return self.far(self.near(x).to(self.far[0].weight.device))

    model = Both().eval()
    x = torch.randn(2, INPUTS)
    with torch.no_grad():
        dense = model(x)
        report = ft.sparsify(model, [torch.randn(20, INPUTS)], dense_above=4)
        assert [entry.device for entry in report.replaced] == ["cpu", f"cuda:{torch.cuda.device_count() - 1}"]
        torch.testing.assert_close(model(x), dense, rtol=1e-3, atol=1e-4)
    assert len(counted) == 2


def test_the_dense_path_is_taken_where_it_should_be(counted):
    model, _, _ = made("relu", "float32")
    x = rows_of(2, "float32")
    model(x).sum().backward()
    assert model[0].weight.grad is not None
    with torch.no_grad():
        with torch.autocast("cuda", torch.bfloat16):
            assert model(x).dtype == torch.bfloat16
        torch.func.vmap(model)(x)
        handle = model[1].register_forward_hook(lambda *_: None)
        model(x)
        handle.remove()
        model.train()(x)
        model.eval()
        assert not counted
        model(x)
    assert len(counted) == 1
    strict, _, _ = made("relu", "bfloat16", gradients="error", unsupported="error")
    with pytest.raises(ff.InvalidArgument, match="gradients are wanted, and gradients='error' was asked for"):
        strict(rows_of(1))
    with torch.no_grad(), pytest.raises(ff.InvalidArgument, match="only float32 on the CPU and bfloat16, float16, fl"):
        strict(rows_of(1).double())


def test_the_choice_is_measured():
    torch.manual_seed(0)
    big = nn.Sequential(nn.Linear(2048, 8192), nn.ReLU(), nn.Linear(8192, 2048))
    nn.init.constant_(big[0].bias, -2.0)
    model = nn.Sequential(big, FORMS["relu"]()).eval()
    model[1] = nn.Sequential(nn.Linear(2048, INPUTS), FORMS["relu"]())
    model = model.cuda().bfloat16().eval()
    report = ft.sparsify(model, [torch.randn(9, 2048, device="cuda").bfloat16()])
    for entry in report.blocks:
        assert set(entry.seconds) <= {1, 2, 4} and entry.dense_above in (None, 1, 2, 4)
        assert all(pair > (0.0, 0.0) for pair in entry.seconds.values())
    print(report)


def test_reasons_are_listed():
    model = nn.ModuleList(
        [
            FORMS["relu"](),
            like.OptLayer(INPUTS, WIDTH),
            FORMS["relu"]().double(),
            like.sequential(12, 40).bfloat16(),
            like.LlamaMlp(INPUTS, WIDTH, like.Squared(), True),
        ]
    ).cuda()
    told = str(ft.sparsify(model.eval(), dense_above=4)).splitlines()
    assert told[1].startswith("  0: fused, relu, ") and told[1].endswith("sparse for up to 4 rows on cuda:0")
    assert "inlined in the forward of a larger module, which has no sparse path on a GPU" in told[2]
    assert told[3].endswith("its weight is float64, not bfloat16 or float16 or float32")
    assert "its 12 inputs and 12 outputs are not multiples of 16 bytes, as they must be on a GPU" in told[4]
    assert "a gate with relu2 on both sides has no kernel on a GPU" in told[5]


def test_a_block_by_itself_names_what_it_takes():
    first, second = torch.randn(40, 16, device="cuda"), torch.randn(40, 16, device="cuda")
    block = DeviceBlock(first, None, second, None)
    for x in (torch.randn(2, 16), torch.randn(2, 16, device="cuda").half(), torch.randn(16, device="cuda")):
        with pytest.raises(ff.InvalidArgument, match="x must be of torch.float32 and shape"):
            block(x)
    with pytest.raises(ff.InvalidArgument, match="x must have 1 to 4 rows; got 5"):
        block(torch.randn(5, 16, device="cuda"))
    with pytest.raises(ff.InvalidArgument, match="second must lie row by row"):
        DeviceBlock(first, None, torch.randn(16, 40, device="cuda").t(), None)
