"""The path of a GPU on a made-up one: which calls take it, what is refused, and what stays after changes and copies."""

import copy
import pickle
import subprocess
import sys
from contextlib import contextmanager

import pytest

import fewfire as ff
import fewfire.torch as ft

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402
from fake_device import FakeGpu  # noqa: E402

from fewfire.torch import _forwards, _platforms, _sparsify  # noqa: E402
from fewfire.torch._timing import in_turn  # noqa: E402
from fewfire.torch.cuda import CaptureError  # noqa: E402

nn, F = torch.nn, torch.nn.functional
INPUTS, WIDTH = 16, 40
FORMS = like.forms(INPUTS, WIDTH, outputs=24)


@pytest.fixture
def gpu(monkeypatch):
    return FakeGpu(monkeypatch)


def made(form="relu", dtype=torch.bfloat16, **options):
    torch.manual_seed(0)
    model = FORMS[form]().eval().to(dtype)
    dense = copy.deepcopy(model)
    report = ft.sparsify(model, **{"dense_above": 4, **options})
    assert len(report.replaced) == 1, str(report)
    return model, dense, report.blocks[0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("form", sorted(FORMS))
def test_up_to_four_rows_are_sparse(gpu, form, dtype):
    model, dense, entry = made(form, dtype, dense_above=100)
    assert entry.form == "fused" and entry.dense_above == 4 and entry.extra_bytes > INPUTS * WIDTH
    x = torch.randn(2, 7, INPUTS).to(dtype).transpose(0, 1)
    close = {torch.bfloat16: 0.03, torch.float16: 4e-3, torch.float32: 1e-5}[dtype]
    with torch.no_grad():
        for rows in (x[0, :1], x[:1], x[:2], x[:2, :1, None], x[3:4, 0]):
            torch.testing.assert_close(model(rows), dense(rows), rtol=close, atol=close)
        assert gpu.rows == [1, 2, 4, 2, 1]
        for rows in (x, x[:3], x[:0]):
            assert torch.equal(model(rows), type(model).forward(model, rows))
    assert len(gpu.launches) == 5


def test_where_the_dense_path_runs(gpu):
    model, _, _ = made("relu", torch.float32)
    x = torch.randn(2, INPUTS)
    model(x).sum().backward()
    assert model[0].weight.grad is not None and model[2].weight.grad is not None
    with torch.no_grad():
        torch.func.vmap(model)(x)
        model.train()(x)
        model.eval()
        with torch.autocast("cpu", torch.bfloat16):
            model(x)
        assert not gpu.launches
        model.double()(x.double())
        assert not gpu.launches
        model.half()(x.half())
        assert gpu.rows == [2]
        with pytest.raises(RuntimeError):  # as a dense model reports it
            model(x)
    strict, _, _ = made(gradients="error", unsupported="error")
    with pytest.raises(ff.InvalidArgument, match="gradients are wanted, and gradients='error' was asked for"):
        strict(x.bfloat16())
    with torch.no_grad(), pytest.raises(ff.InvalidArgument, match="only bfloat16, float16, float32 on a GPU and "):
        strict(x.double())


def test_what_is_missing_is_named(gpu):
    model = FORMS["relu"]()
    gpu.absent = "CuPy is not installed. Remedy: pip install 'fewfire[cuda13]'."
    before = model[2].weight.stride()
    with pytest.raises(ff.MissingDependency) as caught:
        ft.sparsify(model, dense_above=4)
    assert str(caught.value) == (
        "sparse blocks on a GPU cannot run: CuPy is not installed. Remedy: pip install 'fewfire[cuda13]'."
    )
    assert "forward" not in vars(model) and model[2].weight.stride() == before
    gpu.absent = None
    x = torch.randn(2, INPUTS)
    for unsupported in ("dense", "error"):
        model = FORMS["relu"]().eval()
        ft.sparsify(model, dense_above=4, unsupported=unsupported)
        gpu.absent = "CuPy is not installed. Remedy: pip install 'fewfire[cuda13]'."
        other = pickle.loads(pickle.dumps(model))  # on a machine without
        with torch.no_grad():
            if unsupported == "dense":
                assert torch.equal(other(x), nn.Sequential.forward(other, x))
            else:
                with pytest.raises(ff.InvalidArgument) as caught:
                    other(x)
                assert str(caught.value) == (
                    "a sparse block has no sparse path here: a sparse block on a GPU cannot run: CuPy is not installed. "
                    "Remedy: pip install 'fewfire[cuda13]', and unsupported='error' was asked for. "
                    "Remedy: do that, or sparsify with unsupported='dense'."
                )
        gpu.absent = None
    assert not gpu.launches


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
def test_the_remedies_of_this_machine():
    assert "fewfire[cuda13]" in _platforms.Gpu().absent() or "move the model to the CPU" in _platforms.Gpu().absent()
    assert _platforms.Cpu().absent() is None


def test_nothing_else_is_needed_on_a_machine_with_a_gpu():
    hidden = "import sys; sys.modules.update(dict.fromkeys(['fewfire._core', 'sklearn', 'scipy', 'cupy']))"
    work = "import fewfire.torch as ft, torch; ft.sparsify, ft.densify, ft.find_blocks; import fewfire.torch.cuda"
    subprocess.run([sys.executable, "-W", "error", "-c", f"{hidden}; {work}"], check=True)


def test_reasons_are_listed_block_by_block(gpu):
    parts = [
        FORMS["relu"](),
        like.OptLayer(INPUTS, WIDTH),
        FORMS["relu"]().double(),
        like.sequential(12, 40).bfloat16(),
        like.LlamaMlp(INPUTS, WIDTH, like.Squared(), True),
    ]
    told = str(ft.sparsify(nn.ModuleList(parts).eval(), dense_above=9)).splitlines()
    assert told[1].startswith("  0: fused, relu, ") and told[1].endswith("sparse for up to 4 rows")
    assert told[2] == (
        "  1[fc1, fc2]: dense, because it is inlined in the forward of a larger module, which has no sparse path on a GPU"
    )
    assert told[3] == "  2: dense, because of 2.0: its weight is float64, not bfloat16 or float16 or float32"
    assert told[4] == (
        "  3: dense, because its 12 inputs and 12 outputs are not multiples of 16 bytes, as they must be on a GPU"
    )
    assert told[5] == "  4: dense, because a gate with relu2 on both sides has no kernel on a GPU"
    assert parts[4].down_proj.weight.is_contiguous() and "forward" not in vars(parts[4])


def test_the_choice_between_the_paths_is_measured(gpu, monkeypatch):
    model = nn.Sequential(*(like.sequential(INPUTS, WIDTH) for _ in range(3))).eval()
    sizes = iter((1, 2, 4))

    def times(candidates, device):
        assert device == torch.device("cpu")
        rows = next(sizes)
        speeds = {3: [2, 0, 4], 2: [2, 4], 1: [4]}[len(candidates)]
        return [[1.0 if rows <= most else 2.0, 1.5] for most in speeds]

    monkeypatch.setattr(_sparsify, "in_turn", times)
    report = ft.sparsify(model, [torch.randn(70, INPUTS)])
    assert [entry.dense_above for entry in report.blocks] == [2, None, 4]
    assert report.blocks[1].block.reason == _sparsify.FASTER_DENSE and "forward" not in vars(model[1])
    with torch.no_grad():
        model(torch.randn(3, INPUTS))
    assert gpu.rows == [3]


def test_measured_in_earnest(gpu):
    (entry,) = ft.sparsify(FORMS["relu"]().eval(), [torch.randn(3, INPUTS)]).blocks
    assert set(entry.seconds) <= {1, 2} and 1 in entry.seconds and gpu.launches


def test_rows_that_do_not_fit_the_shared_memory_are_dense(gpu):
    gpu.shared_per_row = 90_000
    model, _, entry = made(unsupported="error")
    assert entry.dense_above == 2
    with torch.no_grad():
        for rows in (1, 2, 3, 4):
            model(torch.randn(rows, INPUTS).bfloat16())
    assert gpu.rows == [1, 2]
    gpu.shared_per_row = 300_000
    model = like.sequential(INPUTS, 41).eval()
    (entry,) = ft.sparsify(model, dense_above=4).blocks
    assert entry.block.reason == (
        "first must fit the GPU's shared memory with its lists; got '41 neurons'. Remedy: use the dense block."
    )
    assert "forward" not in vars(model) and model[2].weight.is_contiguous()


def test_changed_weights_are_seen_where_codes_lie(gpu):
    model, dense, _ = made()
    forward = next(iter(_sparsify.sparse_forwards(model)))
    kernel, x = forward.kernel(), torch.randn(2, INPUTS).bfloat16()
    codes = kernel._codes.clone()
    with torch.no_grad():
        model[0].weight.mul_(-1)
        model(x)
        assert forward.kernel() is kernel and torch.equal(kernel._codes, -codes)
        model[0].weight.data.mul_(-1)  # behind torch's back
        assert forward.kernel() is kernel and torch.equal(kernel._codes, -codes)
        assert ft.refresh(model) == 1
        assert forward.kernel() is kernel and torch.equal(kernel._codes, codes)
        model.load_state_dict({name: 2 * value for name, value in model.state_dict().items()})
        dense.load_state_dict({name: 2 * value for name, value in dense.state_dict().items()})
        torch.testing.assert_close(model(x), dense(x), rtol=0.05, atol=0.05)
        assert forward.kernel() is kernel
        model[0].weight = nn.Parameter(model[0].weight.clone())
        model(x)
        assert forward.kernel() is not kernel
        model[2].weight[1, 1] = torch.inf  # a dense block gives NaN then
        before = len(gpu.launches)
        model(x)
        assert forward.kernel() is None and len(gpu.launches) == before
        ft.refresh(model)
        model[2].weight[1, 1] = 1.0
        model(x)
        assert forward.kernel() is not None and len(gpu.launches) == before + 1


def test_modes_of_inference(gpu):
    x = torch.randn(2, INPUTS).bfloat16()
    with torch.inference_mode():
        model, dense, _ = made()
        model(x)
    plain, _, _ = made()
    with torch.inference_mode():
        plain(x)
        plain[0].weight.mul_(2)
        plain(x)
    with torch.no_grad():
        plain[0].weight.mul_(2)
        plain(x)
        torch.testing.assert_close(model(x), dense(x), rtol=0.05, atol=0.05)
    assert len(gpu.launches) == 5


def test_copies_pickles_and_state(gpu):
    model, dense, _ = made("reglu")
    x = torch.randn(2, INPUTS).bfloat16()
    with torch.no_grad():
        value = model(x)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            gpu.launches.clear()
            assert torch.equal(other(x), value) and len(gpu.launches) == 1
            other.gate_proj.weight.zero_()
            assert not other(x).any() and torch.equal(model(x), value)
        assert list(model.state_dict()) == list(dense.state_dict())
        dense.load_state_dict(model.state_dict())
        torch.testing.assert_close(dense(x), value, rtol=0.05, atol=0.05)
        assert ft.densify(model) == 1 and model.down_proj.weight.is_contiguous()
        assert torch.equal(model(x), dense(x))


def test_a_model_moved_to_another_platform(without_core, monkeypatch):
    model = FORMS["relu"]().eval()
    ft.sparsify(model, dense_above=sys.maxsize)  # on the CPU
    x = torch.randn(3, INPUTS)
    with torch.no_grad():
        value = model(x)
        with monkeypatch.context() as patch:
            gpu = FakeGpu(patch)
            model[0].weight.data = model[0].weight.data.clone()  # as .cuda() would
            torch.testing.assert_close(model(x), value)
            model(torch.randn(5, INPUTS))
            assert gpu.rows == [3]
        model[0].weight.data = model[0].weight.data.clone()
        assert torch.equal(model(x), value)


def test_compiled_graphs_hold_one_operator(gpu):
    torch._dynamo.reset()
    model, _, _ = made()
    net = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = torch.randn(3, INPUTS).bfloat16()
    with torch.no_grad():
        value = net(x)
        assert gpu.rows == [3]
        assert torch.equal(value, model(x))
        net(torch.randn(5, INPUTS).bfloat16())
        torch._dynamo.reset()
        double = torch.compile(copy.deepcopy(model).double(), fullgraph=True, backend="aot_eager")
        assert double(x.double()).dtype == torch.float64
    assert gpu.rows == [3, 3]
    forward = next(iter(_sparsify.sparse_forwards(model)))
    torch.library.opcheck(_forwards._operator, (x, forward._handle, forward.outputs))
    torch._dynamo.reset()


def test_captures_need_a_block_that_is_ready(gpu):
    model, _, _ = made()
    other, x = copy.deepcopy(model), torch.randn(1, INPUTS).bfloat16()
    addresses = [parameter.data_ptr() for parameter in other.parameters()]
    gpu.capturing = True
    with torch.no_grad():
        with pytest.raises(CaptureError) as caught:
            other(x)
        assert str(caught.value) == (
            "a sparse block must be ready before a CUDA graph is captured; the codes of its weights have to be made, "
            "or made anew. Remedy: call fewfire.torch.refresh(model), or the model once with as many rows, before the capture."
        )
        assert [parameter.data_ptr() for parameter in other.parameters()] == addresses
        assert not gpu.launches
        model(x)  # sparsify made it ready, for every number of rows
        assert gpu.rows == [1]
        gpu.capturing = False
        ft.refresh(other)
        gpu.capturing = True
        other(x)
        assert gpu.rows == [1, 1]
        with pytest.raises(CaptureError):
            ft.refresh(model)


def test_times_on_a_device_are_between_marks_on_its_stream(monkeypatch):
    clock, entered = [0.0], []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = clock[0]

        def elapsed_time(self, other):
            return other.at - self.at

    def taking(milliseconds):
        return lambda: clock.__setitem__(0, clock[0] + milliseconds)

    @contextmanager
    def device(which):
        entered.append(which)
        yield

    for name, value in (("Event", Event), ("device", device), ("synchronize", lambda: None)):
        monkeypatch.setattr(torch.cuda, name, value)
    there = torch.device("cuda:1")
    times = in_turn([[taking(2), taking(5)], [taking(3), taking(1)]], 0.0, there)
    assert times == [[0.002, 0.005], [0.003, 0.001]] and set(entered) == {there}
