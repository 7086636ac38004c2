"""`fewfire.torch.sparsify` on a GPU: equal to float64 up to rounding, in graphs, compiled, copied, moved, in threads."""

import copy
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import fewfire as ff
import fewfire.torch as ft
from fewfire._cuda import compiled, current_device, missing
from fewfire._cuda._device import load_cupy
from fewfire._cuda._launch import _borrowed

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402

from fewfire.torch import _sparsify  # noqa: E402
from fewfire.torch.cuda import CaptureError, DeviceBlock, _counters  # noqa: E402
from fewfire.torch.cuda._device_block import ACTIVATIONS, KERNELS, TYPES  # noqa: E402

nn, F = torch.nn, torch.nn.functional
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(missing() is not None, reason="needs a GPU")]

INPUTS, WIDTH = 264, 600
FORMS = {
    "relu": lambda: like.sequential(INPUTS, WIDTH),
    "no-bias": lambda: like.sequential(INPUTS, WIDTH, bias=False),
    "shifted": lambda: like.sequential(INPUTS, WIDTH, like.Shifted()),
    "threshold": lambda: like.sequential(INPUTS, WIDTH, like.FatRelu(0.125)),
    "relu2": lambda: like.sequential(INPUTS, WIDTH, like.Squared()),
    "reglu": lambda: like.LlamaMlp(INPUTS, WIDTH),
    "drelu": lambda: like.LlamaMlp(INPUTS, WIDTH, F.relu, True),
    "conv1d": lambda: like.GptMlp(INPUTS, WIDTH),
}
UNITS = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}


@pytest.fixture(scope="module", autouse=True)
def compiled_beforehand():
    """The kernels of this file at once, on as many cores as there are; the cache keeps them."""
    if missing() is not None:
        return
    shapes = []
    for dtype in TYPES:
        first, second, factor = torch.zeros(3, WIDTH, INPUTS, dtype=getattr(torch, dtype), device="cuda").unbind()
        for kind in ACTIVATIONS:
            shapes.append(DeviceBlock(first, None, second, None, activation=kind)._shape)
        for gated in ("reglu", "drelu"):
            shapes.append(DeviceBlock(first, None, second, None, factor=factor, gated=gated)._shape)
    work = [{**shape, "BATCH": batch} for shape in shapes for batch in (1, 2, 3, 4)]
    architecture = current_device().architecture
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda shape: compiled(KERNELS, "sparse_block.cu", architecture, shape), work))


def made(form="relu", dtype="bfloat16", dense_above=4, **options):
    """A sparse model on the GPU, and a dense copy of it on the CPU."""
    torch.manual_seed(0)
    model = FORMS[form]().eval().to("cuda", getattr(torch, dtype))
    dense = copy.deepcopy(model).cpu()
    report = ft.sparsify(model, dense_above=dense_above, **options)
    assert len(report.replaced) == 1, str(report)
    return model, dense, report.blocks[0]


def rows_of(count, dtype="bfloat16", seed=1):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(count, INPUTS, device="cuda", generator=generator).to(getattr(torch, dtype))


def check(given, dense, block, x):
    """Within the rounding of float32 sums, and of the output, of float64."""
    value, bound = like.oracle(block, dense, x.detach().cpu())
    given = given.detach().cpu()
    unit = UNITS[str(given.dtype).removeprefix("torch.")]
    assert given.shape == value.shape and given.dtype is x.dtype
    deviation = (given.double() - value).abs()
    assert bool((deviation <= bound * (1 + unit) + 1.01 * unit * value.abs() + 2.0**-25).all()), deviation.max()


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
        (entry,) = (
            ft.sparsify(model, [rows_of(40, dtype)], dense_above=4).blocks
            if bias == 0.0
            else ft.sparsify(model, dense_above=4).blocks
        )
        with torch.no_grad():
            y = model(x)
        value, bound = like.oracle(entry.block, dense, x.cpu())
        unit = UNITS[dtype]
        fits = value.abs() <= torch.finfo(x.dtype).max  # of half precision's range
        deviation = (y.cpu().double() - value).abs()[fits]
        slack = (bound * (1 + unit) + 1.01 * unit * value.abs())[fits] + 1e-42 + 2.0**-25 * (dtype == "float16")
        assert bool((deviation <= slack).all()), (bias, scale, dtype, float(deviation.max()))
        counted.clear()
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


def captured(model, x, stream=None):
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, stream=stream):
        y = model(x)
    return graph, y


@pytest.mark.parametrize("batch", [1, 3])
def test_graphs_replay_with_changed_inputs_and_weights(batch, counted):
    model, _, _ = made("reglu")
    x = rows_of(batch)
    graph, y = captured(model, x)
    assert len(counted) == 1
    with torch.no_grad():
        for seed in range(2, 6):
            x.copy_(rows_of(batch, seed=seed))
            graph.replay()
            assert torch.equal(y, model(x))
        other, other_y = captured(model, x)
        model.gate_proj.weight.mul_(-0.5)
        model.down_proj.weight.mul_(2)
        assert ft.refresh(model) == 1  # in place: graphs see it
        for each, out in ((graph, y), (other, other_y)):
            each.replay()
            assert torch.equal(out, model(x))
            torch.testing.assert_close(out, type(model).forward(model, x), rtol=0.1, atol=0.05)


def test_graphs_run_beside_each_other():
    model, _, _ = made()
    streams = [torch.cuda.Stream() for _ in range(3)]
    inputs = [rows_of(2, seed=seed) for seed in range(3)]
    with torch.no_grad():
        wanted = [model(x) for x in inputs]
    graphs = [captured(model, x, stream) for x, stream in zip(inputs, streams, strict=True)]
    torch.cuda.synchronize()
    for _ in range(50):
        for (graph, _), stream in zip(graphs, streams, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
    torch.cuda.synchronize()
    for (_, y), value in zip(graphs, wanted, strict=True):
        assert torch.equal(y, value)


def test_more_launches_than_there_are_counters():
    model, _, _ = made()
    x = rows_of(1)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        value = model(x)
        with torch.cuda.graph(graph):
            ys = [model(x) for _ in range(_counters.CAPTURED + 3)]
        for _ in range(3):
            for y in ys:
                y.zero_()
            graph.replay()
            assert all(torch.equal(y, value) for y in ys)
        torch.cuda.synchronize()
        for _ in range(_counters.STREAMS + 3):
            with torch.cuda.stream(torch.cuda.Stream()):
                y = model(x)
            torch.cuda.synchronize()
            assert torch.equal(y, value)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_what_is_not_ready_cannot_be_captured():
    model, _, _ = made()
    x = rows_of(1)
    other = copy.deepcopy(model)
    weights = [p.clone() for p in other.parameters()]
    with pytest.raises(CaptureError) as caught:
        captured(other, x)
    assert str(caught.value) == (
        "a sparse block must be ready before a CUDA graph is captured; the codes of its weights have to be made, "
        "or made anew. Remedy: call fewfire.torch.refresh(model), or the model once with as many rows, before the capture."
    )
    torch.cuda.synchronize()
    assert all(torch.equal(p, q) for p, q in zip(other.parameters(), weights, strict=True))
    ft.refresh(other)
    graph, y = captured(other, x)
    graph.replay()
    with torch.no_grad():
        assert torch.equal(y, other(x))


@pytest.mark.parametrize("backend", ["aot_eager", "cudagraphs"])
@pytest.mark.filterwarnings("ignore")  # of torch's own compiler
def test_compiled(backend, counted):
    torch._dynamo.reset()
    model, _, _ = made()
    net = torch.compile(model, fullgraph=True, backend=backend, dynamic=False)
    with torch.no_grad():
        for seed in range(4):
            x = rows_of(2, seed=seed)
            assert torch.equal(net(x).clone(), model(x))
        assert len(counted) >= 5
        model[0].weight.mul_(2)
        if backend == "cudagraphs":
            ft.refresh(model)
        x = rows_of(2)
        assert torch.equal(net(x).clone(), model(x))
        counted.clear()
        many = rows_of(9)
        torch.testing.assert_close(net(many).clone(), model(many))
        assert not counted
    forward = next(iter(_sparsify.sparse_forwards(model)))
    from fewfire.torch import _forwards

    torch.library.opcheck(_forwards._operator, (rows_of(2), forward._handle, forward.outputs))
    torch._dynamo.reset()


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


def test_two_threads_on_two_streams():
    model, _, _ = made()
    inputs = [rows_of(rows, seed=rows) for rows in (1, 2, 1, 4)]
    with torch.no_grad():
        wanted = [model(x) for x in inputs]
    next(iter(_sparsify.sparse_forwards(model)))._held = None  # all threads find codes missing
    torch.cuda.synchronize()
    wrong = []

    def work(x, value, stream):
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(100):
                if not torch.equal(model(x), value):
                    wrong.append(len(x))

    streams = [torch.cuda.Stream() for _ in inputs[1:]]
    streams.append(streams[0])  # two of them on one stream
    threads = [threading.Thread(target=work, args=each) for each in zip(inputs, wanted, streams, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_launches_follow_torchs_current_stream():
    """A stream is borrowed from torch: launches are in its order, and it outlives the loan."""
    model, _, _ = made()
    x, later = rows_of(1), rows_of(1, seed=7)
    with torch.no_grad():
        wanted = model(later)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        for _ in range(3):
            x.copy_(rows_of(1))
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20_000_000)  # some milliseconds, in which another stream would have read x
                x.copy_(later)
                y = model(x)
            assert not stream.query()
            gc.collect()
            stream.synchronize()
            assert torch.equal(y, wanted)


def test_a_borrowed_stream_is_not_destroyed():
    cupy = load_cupy()
    stream = torch.cuda.Stream()
    for handle in (stream.cuda_stream, torch.cuda.default_stream().cuda_stream):
        loan = _borrowed(cupy, handle)
        assert loan.ptr == handle
        del loan
        gc.collect()
    with torch.cuda.stream(stream):
        x = torch.ones(10, device="cuda") * 2
    stream.synchronize()
    assert float(x.sum()) == 20.0


def test_moved_models(without_core, counted):
    model, _, _ = made("relu", "float32")
    x = rows_of(2, "float32")
    with torch.no_grad():
        value = model(x)
        model.cpu()
        torch.testing.assert_close(model(x.cpu()), value.cpu())
        with pytest.raises(RuntimeError):  # as a dense model says it
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


def test_reasons_are_told():
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


def test_a_block_by_itself_says_what_it_takes():
    first, second = torch.randn(40, 16, device="cuda"), torch.randn(40, 16, device="cuda")
    block = DeviceBlock(first, None, second, None)
    for x in (torch.randn(2, 16), torch.randn(2, 16, device="cuda").half(), torch.randn(16, device="cuda")):
        with pytest.raises(ff.InvalidArgument, match="x must be of torch.float32 and shape"):
            block(x)
    with pytest.raises(ff.InvalidArgument, match="x must have 1 to 4 rows; got 5"):
        block(torch.randn(5, 16, device="cuda"))
    with pytest.raises(ff.InvalidArgument, match="second must lie row by row"):
        DeviceBlock(first, None, torch.randn(16, 40, device="cuda").t(), None)
