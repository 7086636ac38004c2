"""Kernels that wait for their own blocks share a device: who may start when, and what a stop does, on fake events."""

import threading
from types import SimpleNamespace

import pytest

from fewfire._cuda import _launch
from fewfire._cuda._launch import own_stream, watch


class FakeEvent:
    """Done when its thread's kernel is; `begun` events are recorded on an idle stream."""

    kernels = threading.local()

    def __init__(self):
        self._after = None

    def record(self):
        self._after = getattr(self.kernels, "running", None)

    @property
    def done(self):
        return self._after is None or self._after.is_set()

    def synchronize(self):
        assert self._after is None or self._after.wait(5)


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    fake = SimpleNamespace(cuda=SimpleNamespace(Event=FakeEvent, get_elapsed_time=lambda begun, done: 7.0))
    monkeypatch.setattr(_launch, "load_cupy", lambda: fake)
    monkeypatch.setattr(_launch, "_REPORT_EVERY", 0.0)


class Kernel:
    """One in a thread of its own, whose blocks arrive and end when the test sets it."""

    def __init__(self, tell=lambda started: None):
        self.started, self.placed, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.stopped, self.outcome, self._tell = False, None, tell
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        FakeEvent.kernels.running = None
        try:
            self.outcome = watch(self._start, self._tell, self._stop, self.placed.is_set)
        except BaseException as error:
            self.outcome = error

    def _start(self):
        FakeEvent.kernels.running = self.ended
        self.started.set()

    def _stop(self):
        self.stopped = True
        self.ended.set()

    def join(self):
        self._thread.join(5)
        return self.outcome


def test_a_kernel_starts_when_all_blocks_of_the_one_before_have_a_place():
    first = Kernel()
    assert first.started.wait(5)
    second = Kernel()
    assert not second.started.wait(0.1)
    first.placed.set()
    assert second.started.wait(5) and first.outcome is None  # both are on the device
    second.ended.set()
    assert second.join() == 7e-3
    first.ended.set()
    assert first.join() == 7e-3


def test_a_kernel_that_ends_at_once_delays_nothing():
    first = Kernel()
    first.ended.set()
    assert first.join() == 7e-3
    second = Kernel()
    assert second.started.wait(5)
    second.ended.set()
    assert second.join() == 7e-3


def test_what_stops_a_running_kernel_leaves_the_device_to_others():
    def press(started):
        if started:
            raise KeyboardInterrupt

    pressed = Kernel(press)
    assert isinstance(pressed.join(), KeyboardInterrupt) and pressed.stopped
    later = Kernel()
    later.ended.set()
    assert later.join() == 7e-3


def test_what_waits_for_its_turn_can_be_stopped():
    def press(started):
        assert not started
        raise KeyboardInterrupt

    first = Kernel()
    assert first.started.wait(5)
    pressed = Kernel(press)
    assert isinstance(pressed.join(), KeyboardInterrupt)
    assert not pressed.started.is_set() and not pressed.stopped
    first.ended.set()
    assert first.join() == 7e-3


def test_an_error_waits_for_what_was_begun(monkeypatch):
    """Memory that is freed then may be another's at once, while copies and draws into it are still to come."""
    waited = []

    class Stream:
        def __init__(self, non_blocking):
            assert non_blocking

        def __enter__(self):
            return self

        def __exit__(self, *error):
            waited.append("left")

        def synchronize(self):
            waited.append("done")

    cuda = SimpleNamespace(Stream=Stream, Device=lambda: SimpleNamespace(id=0))
    monkeypatch.setattr(_launch, "load_cupy", lambda: SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(_launch, "_own", threading.local())
    with own_stream():
        pass
    assert waited == ["left"]
    with pytest.raises(KeyboardInterrupt), own_stream():
        raise KeyboardInterrupt
    assert waited == ["left", "done", "left"]
