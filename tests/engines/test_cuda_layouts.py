"""The CUDA engine without a GPU: planning on recorded devices, records, packing, and what it names as missing."""

from dataclasses import replace

import numpy as np
import pytest
from fake_cuda import A100, H200

from fewfire._cuda import _compile, _nvrtc
from fewfire._cuda._compile import compiled
from fewfire._cuda._nvrtc import CompileError, find_nvrtc
from fewfire._errors import MissingDependency
from fewfire.engines import Phase, Run, Sample, Schedule, Start
from fewfire.engines._gradients import LOSSES
from fewfire.engines.cuda import CudaEngine
from fewfire.engines.cuda import _records as records
from fewfire.engines.cuda._batch import Batch, run_bytes
from fewfire.engines.cuda._kernels import KERNELS, KernelVariant, variant_of
from fewfire.engines.cuda._layouts import GENERAL, TILE, KernelLayout, choose_layout
from fewfire.engines.cuda._shared import ScheduleTables
from fewfire.networks import TwoLayer, init
from fewfire.problems import Parity


def run(inputs=50, width=100, rows=200, schedule=None, **fields):
    fields = {"sample": Sample(Parity(inputs, 2), rows, 3), **fields}
    return Run(Start(init.dense(), inputs, width, 1), schedule or Schedule(Phase(100)), **fields)


@pytest.mark.parametrize("device", [H200, A100], ids=lambda device: device.name)
@pytest.mark.parametrize("inputs", [1, 15, 16, 50, 63, 64, 111, 112, 200, 223, 224, 300, 319])
@pytest.mark.parametrize("width", [1, 10, 16, 17, 100, 1000, 12345])
@pytest.mark.parametrize("whole_slopes", [True, False], ids=["hinge", "logistic"])
def test_a_layout_holds_the_network(device, inputs, width, whole_slopes):
    layout = choose_layout(inputs, width, device, whole_slopes)
    assert layout.fast and not layout.streamed
    assert 16 * (layout.columns - 1) <= inputs < 16 * layout.columns  # the bias has a column, padding stays in the last
    assert layout.tiles * layout.warps * layout.parts * TILE >= width
    assert layout.tiles * layout.warps * (layout.parts - 1) * TILE < width
    assert layout.parts <= device.multiprocessors and layout.tiles % layout.together == 0
    registers = min(65536 // (32 * layout.warps * layout.blocks), 255)
    held = 8 * (layout.columns - layout.parked) * layout.tiles
    assert registers >= held + (120 if layout.warpgroup else 56)  # what the products need besides the weights
    if layout.warpgroup:
        # In KiB: parked weights, scores or masks of each tile, three slots of examples, and what is left for the rest.
        tiles = layout.warps * layout.tiles * (layout.parked + (2 if layout.keeps_scores else 0.5))
        in_bytes = whole_slopes and (layout.columns <= 13 or not layout.keeps_scores)
        slots = 3 * layout.columns * (1.5 if in_bytes else 1)
        assert layout.blocks * (tiles + slots + 7) * 1024 <= device.shared_bytes
    assert layout.warpgroup == (device is H200 and width > 32)


@pytest.mark.parametrize("inputs", [50, 200, 300])
def test_networks_wider_than_the_registers_are_streamed(inputs):
    layout = choose_layout(inputs, 200_000, H200)
    assert layout.streamed and layout.parts == 132 and layout.at_once(H200) == 1


@pytest.mark.parametrize("inputs", [50, 100, 150, 200, 250, 300])
def test_thirty_thousand_neurons_stay_on_an_h200(inputs):
    layout = choose_layout(inputs, 30_000, H200)
    assert not layout.streamed and layout.parts <= 132


def test_a_layout_does_not_depend_on_how_many_runs_there_are():
    tasks = [run() for _ in range(5)]
    assert len({variant_of(task, H200) for task in tasks}) == 1
    assert choose_layout(50, 10, H200) == choose_layout(50, 10, A100)


@pytest.mark.parametrize(
    ("inputs", "width", "at_once"), [(50, 10, 1584), (50, 100, 396), (50, 1000, 66), (200, 1000, 33), (200, 10000, 3)]
)
def test_runs_at_once_on_an_h200(inputs, width, at_once):
    assert choose_layout(inputs, width, H200).at_once(H200) == at_once


@pytest.mark.parametrize(
    "changed",
    [
        {"schedule": Schedule(Phase(10, batch_size=31))},
        {"schedule": Schedule(Phase(10, batch_size=None))},
        {"schedule": Schedule(Phase(10, truncation=0.1))},
        {"schedule": Schedule(Phase(10), loss="square")},
        {"schedule": Schedule(Phase(10, learning_rate=0.0))},
        {"schedule": Schedule(Phase(10, weight_decay=0.9, decay="direct"))},
        {"schedule": Schedule(Phase(10, learning_rate=-0.1, weight_decay=0.1))},
        {"inputs": 400},
    ],
)
def test_what_registers_cannot_serve_goes_to_the_general_kernel(changed):
    assert variant_of(run(**changed), H200) == KernelVariant(GENERAL)


def test_networks_with_another_activation_and_real_rows_go_to_the_general_kernel():
    start = init.dense()(20, 10, 1)
    X, y = Parity(20, 3).sample(30, 1)
    plain = Run(start, Schedule(Phase(10)), X, y)
    clipped = Run(TwoLayer(start.hidden, start.bias, start.output, activation="relu6"), Schedule(Phase(10)), X, y)
    real = Run(start, Schedule(Phase(10)), X * np.float32(0.5), y)
    assert variant_of(plain, H200).layout.fast
    assert variant_of(clipped, H200) == variant_of(real, H200) == KernelVariant(GENERAL)


@pytest.mark.parametrize("width", [10, 1000, 100_000])
@pytest.mark.parametrize("batch", [32, 100])
def test_a_batch_takes_no_more_memory_than_planned(fake_device, width, batch):
    schedules = [Schedule(Phase(200, batch_size=batch), evaluate=every) for every in (1, 50)]
    drawn = run(width=width, schedule=schedules[0], support=(0, 1)).drawn()
    online = run(width=width, schedule=schedules[1], sample=None, source=Parity(50, 3, noise=0.1))
    tested = [run(width=width, schedule=schedules[1], test=Sample(Parity(50, 2), 64, seed)) for seed in range(3)]
    for tasks in ([drawn, *tested], [online]):
        made = Batch(tasks, variant_of(tasks[-1], H200))
        jobs = made._jobs
        assert all(jobs["width"] == width) and all(jobs["inputs"] == 50) and all(jobs["steps"] == 200)
        assert all(jobs["checks"] == [len(task.schedule.checkpoints()) for task in tasks])
        assert np.array_equal(made._arena.held[int(jobs["checkpoints"][-1])], tasks[-1].schedule.checkpoints())
    assert jobs["source"]["problem"][0] == 1 and jobs["measured"][0] == 0


def test_tables_of_a_schedule():
    schedule = Schedule((Phase(3, 0.1, weight_decay=0.5), Phase(2, [0.2, 0.3], truncation=0.01)), evaluate=2)
    tables = ScheduleTables.of(schedule)
    assert tables is ScheduleTables.of(schedule) and not tables.fast and tables.positions == 5 * 32
    assert [tuple(map(int, segment)) for segment in tables.segments] == [(3, 32, 0, 0), (2, 32, 1, 1)]
    assert np.allclose(tables.rates[:, [0, 4, 8]], [[0.1, 0.95, 0], [0.2, 1, 0.01], [0.3, 1, 0.01]])
    assert list(tables.checkpoints) == [0, 2, 4, 5]


def test_bytes_grow_with_width_rows_and_checkpoints():
    layout = choose_layout(50, 100, H200)
    base = run_bytes(run(), layout)
    assert run_bytes(run(width=200), layout) >= base + 4 * 100 * 52
    assert run_bytes(run(rows=1200), layout) >= base + 1000 * 8
    assert run_bytes(run(schedule=Schedule(Phase(100), evaluate=1)), layout) > base


def test_signs_are_packed_with_the_label_on_top():
    X, y = Parity(33, 2).sample(7, 5)
    words = records.pack_signs(X, y)
    assert words.shape == (7, 2) and words.dtype == np.uint32
    for j in (0, 31, 32):
        assert np.array_equal(1 - 2 * (words[:, j // 32] >> (j % 32) & 1).astype(int), X[:, j])
    assert np.array_equal(1 - 2 * (words[:, -1] >> 31).astype(int), y)
    assert list(records.support_bits((0, 32), 33)) == [1, 1]


def test_losses_keep_the_numbers_of_the_kernels():
    assert list(LOSSES) == ["hinge", "logistic", "square", "absolute"]


def test_the_error_names_what_is_missing():
    reason = CudaEngine().unusable()
    if reason is not None:
        assert "Remedy:" in reason and ("fewfire[cuda13]" in reason or "engine='cpu'" in reason)


def test_without_nvrtc_compiling_raises(monkeypatch, tmp_path):
    monkeypatch.setattr(_nvrtc, "find_nvrtc", lambda: None)
    _nvrtc.version.cache_clear()
    monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
    with pytest.raises(MissingDependency, match=r"needs NVRTC.*fewfire\[cuda13\]"):
        compiled(KERNELS, "draw.cu", 90)


def test_the_cache_is_where_the_user_put_it(monkeypatch, tmp_path):
    monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
    assert _compile.cache_folder() == tmp_path / "cuda"


@pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed")
class TestCompiling:
    @pytest.mark.parametrize("architecture", [80, 90, 100])
    @pytest.mark.parametrize("file", ["draw.cu", "general.cu"])
    def test_kernels_compile(self, monkeypatch, tmp_path, file, architecture):
        monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
        code = compiled(KERNELS, file, architecture)
        assert code[:4] == b"\x7fELF" and compiled(KERNELS, file, architecture) == code
        assert len(list((tmp_path / "cuda").glob("*.cubin"))) == 1

    @pytest.mark.parametrize("architecture", [80, 90, 100])
    @pytest.mark.parametrize(
        ("inputs", "width", "loss", "online"),
        [
            (50, 10, "hinge", False),
            (50, 40, "logistic", False),
            (20, 300, "hinge", True),
            (50, 100, "absolute", False),
            (120, 1000, "hinge", False),
            pytest.param(200, 1000, "hinge", False, marks=pytest.mark.slow),  # longer tiles of the same kind
        ],
    )
    def test_layouts_compile(self, monkeypatch, tmp_path, inputs, width, loss, online, architecture):
        monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
        layout = choose_layout(inputs, width, replace(H200, architecture=architecture), loss != "logistic")
        definitions = KernelVariant(layout, loss, online).definitions()
        assert compiled(KERNELS, "resident.cu", architecture, definitions)[:4] == b"\x7fELF"

    @pytest.mark.parametrize("inputs", [120, pytest.param(200, marks=pytest.mark.slow)])
    def test_streaming_compiles(self, monkeypatch, tmp_path, inputs):
        monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
        definitions = KernelVariant(choose_layout(inputs, 100_000, H200)).definitions()
        assert compiled(KERNELS, "stream.cu", 90, definitions)[:4] == b"\x7fELF"

    def test_a_refused_kernel_shows_its_log(self, monkeypatch, tmp_path):
        monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path))
        with pytest.raises(CompileError, match=r"(?s)could not compile resident\.cu.*error"):
            compiled(KERNELS, "resident.cu", 90, {**KernelVariant(KernelLayout(4)).definitions(), "TILES": 0})
