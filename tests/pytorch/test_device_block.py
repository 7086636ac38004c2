"""Sparse blocks on a GPU: kernels compile everywhere; on a device they find what fires and repeat to the bit."""

from types import SimpleNamespace

import numpy as np
import pytest

from fewfire._cuda._compile import compiled
from fewfire._cuda._device import missing
from fewfire._cuda._launch import _borrowed
from fewfire._cuda._nvrtc import find_nvrtc

torch = pytest.importorskip("torch")
from device_models import compile_all  # noqa: E402

from fewfire.torch.cuda._codes import BIAS, LEFT, ROUNDED, SCALES, all_finite, empty_codes, encode  # noqa: E402
from fewfire.torch.cuda._device_block import KERNELS, DeviceBlock  # noqa: E402

SHAPE = {"INPUTS": 264, "OUTPUTS": 72, "BATCH": 1, "TYPE": 0, "GATED": 0, "ACTIVATION": 0, "THREADS": 512, "LANES": 2}


@pytest.mark.skipif(find_nvrtc() is None, reason="needs NVRTC, from the extra cuda13 or cuda12")
@pytest.mark.parametrize(
    ("architecture", "changed"),
    [(80, {"TYPE": 2, "BATCH": 4, "ACTIVATION": 1}), (90, {"TYPE": 1, "GATED": 2}), (100, {"BATCH": 2, "GATED": 1})],
)
def test_kernels_compile(architecture, changed, tmp_path, monkeypatch):
    monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
    code = compiled(KERNELS, "sparse_block.cu", architecture, {**SHAPE, **changed})
    assert code.startswith(b"\x7fELF") and b"sparse_block" in code


def encoded(weight, bias):
    codes, bounds = empty_codes(weight)
    encode(weight, bias, codes, bounds)
    return codes, bounds


@pytest.mark.parametrize("size", [1.0, 1e-39, 1e30])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_bounds_of_codes_hold(dtype, size):
    generator = torch.Generator().manual_seed(0)
    weight = (size * torch.randn(50, 700, generator=generator)).to(getattr(torch, dtype))
    weight[3], weight[4, 7], weight[5, 512:] = 0.0, 40 * size, 0.0
    weight = torch.nan_to_num(weight, posinf=0.0, neginf=0.0)
    codes, bounds = encoded(weight, torch.arange(50.0))
    assert codes.shape == (50, 1024) and not codes[:, 700:].any() and torch.equal(bounds[:, BIAS], torch.arange(50.0))
    x = torch.randn(700, 200, generator=generator).double()
    scales = bounds[:, SCALES : SCALES + 2].double().repeat_interleave(512, dim=1)
    said = (codes.double() * scales)[:, :700]
    error = (weight.double() @ x - said @ x).abs()
    assert bool((error <= bounds[:, LEFT, None].double() * x.norm(dim=0) * (1 + 1e-12)).all())
    assert bool((said.norm(dim=1) <= bounds[:, ROUNDED].double()).all())
    # And are of some use: a large weight makes those around it coarse, not the rest.
    share = bounds[:, LEFT].double() / (weight.double().norm(dim=1) + 1e-42)
    assert bool((share <= 0.09).all()) and float(share.sort().values[-2]) <= 0.011


def test_rows_that_are_not_finite_are_never_ruled_out():
    weight = torch.ones(2, 8)
    weight[0, 3], weight[1, 2] = torch.nan, torch.inf
    _, bounds = encoded(weight, None)
    assert bool(torch.isinf(bounds[:, LEFT]).all()) and not all_finite(weight) and all_finite(weight[:0])


def test_streams_are_borrowed_as_cupy_requires():
    class Stream:
        @classmethod
        def from_external(cls, other):
            return ("since 14", other.__cuda_stream__())

    cuda = SimpleNamespace(Stream=Stream)
    assert _borrowed(SimpleNamespace(cuda=cuda), 12345) == ("since 14", (0, 12345))
    older = SimpleNamespace(Stream=object(), ExternalStream=lambda handle: ("13", handle))
    assert _borrowed(SimpleNamespace(cuda=older), 12345) == ("13", 12345)


def activated(score, kind, threshold):
    value = score - threshold if kind == "shifted" else score * score if kind == "relu2" else score
    return torch.where(score > threshold, value, torch.zeros_like(value))


CASES = [
    (264, 1000, 72, "relu", 0.0, None),
    (8, 1, 8, "relu", 0.0, None),
    (1024, 4099, 1024, "shifted", 0.3, None),
    (512, 700, 4096, "threshold", 0.5, None),
    (264, 300, 264, "relu2", 0.0, None),
    (520, 2000, 520, "relu", 0.0, "reglu"),
    (520, 2000, 136, "relu", 0.1, "drelu"),
]


@pytest.fixture(scope="module")
def compiled_beforehand():
    """The kernels of all cases at once."""
    blocks = []
    for dtype in ("bfloat16", "float16", "float32"):
        for inputs, width, outputs, kind, threshold, gated in CASES:
            options = {"dtype": getattr(torch, dtype), "device": "cuda"}
            first, second = torch.zeros(width, inputs, **options), torch.zeros(width, outputs, **options)
            other = {"factor": first} if gated else {}
            made = DeviceBlock(first, None, second, None, **other, activation=kind, threshold=threshold, gated=gated)
            blocks.append(made)
    compile_all(blocks, (1, 2, 4))


@pytest.mark.parametrize("batch", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(("inputs", "width", "outputs", "kind", "threshold", "gated"), CASES)
@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason="needs a GPU")
def test_outputs_are_those_of_float64(
    compiled_beforehand, batch, dtype, inputs, width, outputs, kind, threshold, gated
):
    generator = torch.Generator("cuda").manual_seed(1)
    kind_of = getattr(torch, dtype)

    def draw(*shape):
        return torch.randn(*shape, device="cuda", generator=generator)

    first, second = (draw(width, inputs) / inputs**0.5).to(kind_of), (draw(width, outputs) / width**0.5).to(kind_of)
    bias, second_bias = (draw(width) - 1.5).to(kind_of), draw(outputs).to(kind_of)
    factor = (draw(width, inputs) / inputs**0.5).to(kind_of) if gated else None
    factor_bias = draw(width).to(kind_of) if gated else None
    options = {"factor": factor, "factor_bias": factor_bias, "gated": gated}
    block = DeviceBlock(first, bias, second, second_bias, activation=kind, threshold=threshold, **options)
    for size in (1.0, 0.0, 1e-3, 30.0):
        x = (size * draw(batch, inputs)).to(kind_of)
        y = block(x)
        score = x.double() @ first.double().T + bias.double()
        value = activated(score, kind, threshold)
        if gated:
            other = x.double() @ factor.double().T + factor_bias.double()
            value = value * (torch.relu(other) if gated == "drelu" else other)
        exact = value @ second.double() + second_bias.double()
        # Rounding of the output, of float32 sums, and of scores at a jump of the activation.
        unit = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-22}[dtype]
        near = (score - threshold).abs() < 1e-5 * (1 + score.abs().max())
        jump = (near * value.abs().clamp(min=threshold)) @ second.double().abs() if kind == "threshold" else 0.0
        slack = unit * exact.abs() + jump + 2e-6 * (value.abs() @ second.double().abs() + 1e-3)
        assert bool(((y.double() - exact).abs() <= slack).all()), (size, float((y.double() - exact).abs().max()))
        assert torch.equal(y, block(x))
        fires = (score > threshold).any(dim=0) & ~near.any(dim=0)
        assert block.listed(x) >= int(fires.sum()) or gated == "drelu"


@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason="needs a GPU")
def test_all_dead_all_alive_and_what_is_not_finite():
    x = torch.randn(1, 512, device="cuda").bfloat16()
    first, second = torch.randn(3000, 512, device="cuda").bfloat16(), torch.randn(3000, 512, device="cuda").bfloat16()
    dead = DeviceBlock(first, torch.full((3000,), -1e4, device="cuda"), second, None)
    assert not dead(x).any() and dead.listed(x) == 0
    alive = DeviceBlock(first, torch.full((3000,), 1e4, device="cuda"), second, None)
    exact = (x.double() @ first.double().T + 1e4) @ second.double()
    assert torch.allclose(alive(x).double(), exact, rtol=1e-2, atol=1e3)
    assert alive.listed(x) == 3000
    broken = x.clone()
    broken[0, 5] = torch.nan
    assert bool(torch.isnan(dead(broken)).all())


@pytest.mark.gpu
@pytest.mark.skipif(missing() is not None, reason="needs a GPU")
def test_a_graph_replays_it():
    first, second = torch.randn(2000, 512, device="cuda").half(), torch.randn(2000, 512, device="cuda").half()
    block = DeviceBlock(first, torch.full((2000,), -20.0, device="cuda"), second, None)
    x = torch.randn(1, 512, device="cuda").half()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        block(x)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        y = block(x)
    for _ in range(3):
        x.copy_(torch.randn(1, 512, device="cuda"))
        graph.replay()
        assert np.array_equal(y.cpu().numpy(), block(x).cpu().numpy())
