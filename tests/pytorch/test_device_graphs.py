"""Sparse models on a GPU in CUDA graphs, compiled, on several streams and in several threads."""

import copy
import gc
import threading

import pytest

import fewfire.torch as ft
from fewfire._cuda._device import load_cupy, missing
from fewfire._cuda._launch import _borrowed

torch = pytest.importorskip("torch")
from device_models import made, rows_of  # noqa: E402

from fewfire.torch import _forwards, _sparsify  # noqa: E402
from fewfire.torch.cuda import CaptureError, _device_block  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(missing() is not None, reason="needs a GPU")]


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


def test_graphs_run_concurrently():
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
            ys = [model(x) for _ in range(_device_block.CAPTURED + 3)]
        for _ in range(3):
            for y in ys:
                y.zero_()
            graph.replay()
            assert all(torch.equal(y, value) for y in ys)
        torch.cuda.synchronize()
        for _ in range(_device_block.STREAMS + 3):
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
    torch.library.opcheck(_forwards._operator, (rows_of(2), forward._handle, forward.outputs))
    torch._dynamo.reset()


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
