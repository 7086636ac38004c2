"""What launches a sparse block on a GPU, on a made-up one: counters, kernels that are shared, and what is refused."""

import pytest

import fewfire as ff

torch = pytest.importorskip("torch")
from fake_device import FakeGpu  # noqa: E402

from fewfire.torch.cuda import CaptureError, DeviceBlock, _device_block  # noqa: E402

INPUTS = 16


@pytest.fixture
def gpu(monkeypatch):
    return FakeGpu(monkeypatch)


def weights():
    torch.manual_seed(0)
    return torch.randn(48, INPUTS), None, torch.randn(48, INPUTS)


def test_launches_that_may_meet_have_counters_of_their_own(gpu):
    block, x = DeviceBlock(*weights(), None), torch.randn(2, INPUTS)
    for stream in (1, 2, 1, 1, 2):
        gpu.stream = stream
        block(x)
        block(x[:1])
    of = {(launch.stream, launch.counters) for launch in gpu.launches}
    assert len(of) == 2 and len({counters for _, counters in of}) == 2
    gpu.capturing = True
    for _ in range(_device_block.CAPTURED):
        block(x)
    captured = [launch.counters for launch in gpu.launches[10:]]
    assert len({*captured, *(counters for _, counters in of)}) == _device_block.CAPTURED + 2
    memory = block._counters._memory
    ends = range(memory.data_ptr(), memory.data_ptr() + memory.nbytes)
    assert all(counters in ends for counters in captured)
    block(x)  # none left: made for this launch alone
    gpu.capturing = False
    for stream in range(3, 20):
        gpu.stream = stream
        block(x)
    inside = [launch.counters in ends for launch in gpu.launches[10 + _device_block.CAPTURED :]]
    assert inside == [False] + [True] * (_device_block.STREAMS - 2) + [False] * (17 - _device_block.STREAMS + 2)


def test_blocks_of_one_shape_share_their_kernels(gpu):
    blocks = [DeviceBlock(*weights(), None) for _ in range(3)]
    assert [block.prepare() for block in blocks] == [4, 4, 4]
    assert blocks[0]._plan(2).kernel is blocks[2]._plan(2).kernel
    assert blocks[0].listed(torch.zeros(1, INPUTS)) == 0
    assert blocks[0].listed(torch.randn(4, INPUTS)) > 20


def test_a_block_by_itself_names_what_it_takes(gpu):
    first, _, second = weights()
    block = DeviceBlock(first, None, second, None)
    for x in (torch.randn(2, 15), torch.randn(2, INPUTS).half(), torch.randn(INPUTS)):
        with pytest.raises(
            ff.InvalidArgument, match=r"x must be of torch.float32 and shape \(1 to 4, 16\) on cpu; got"
        ):
            block(x)
    with pytest.raises(ff.InvalidArgument, match="x must have 1 to 4 rows; got 5. Remedy: use the dense block."):
        block(torch.randn(5, INPUTS))
    for changed, text in (
        (
            {"second": torch.randn(INPUTS, 48).t()},
            "second must lie row by row, at a multiple of 16 bytes; got a tensor",
        ),
        (
            {"second": second.half()},
            "second must be of one of the types bfloat16, float16, float32, on one GPU and the",
        ),
        ({"first": first.double(), "second": second.double()}, "got a tensor of float64 on cpu"),
        ({"second": second[:, :6].contiguous()}, "first must have a multiple of 4 inputs and outputs; got '16 and 6'"),
    ):
        given = {"first": first, "second": second, **changed}
        with pytest.raises(ff.InvalidArgument, match=text):
            DeviceBlock(given["first"], None, given["second"], None)
    gpu.absent = "NVRTC was not found. Remedy: install it."
    with pytest.raises(ff.MissingDependency, match="a sparse block on a GPU cannot run: NVRTC was not found"):
        DeviceBlock(first, None, second, None)


def test_kernels_are_not_loaded_while_a_graph_is_captured(gpu):
    block = DeviceBlock(*weights(), None)
    gpu.capturing = True
    with pytest.raises(
        CaptureError, match="the kernel for 2 rows is not loaded yet. Remedy: call fewfire.torch.refresh"
    ):
        block(torch.randn(2, INPUTS))
    with pytest.raises(CaptureError, match="the codes of its weights have to be made, or made anew"):
        block.renew()
    gpu.capturing = False
    block.prepare()
    gpu.capturing = True
    block(torch.randn(2, INPUTS))
    assert gpu.rows == [2]
