"""Settings for the whole suite: property tests are derandomised, so a failure repeats."""

import faulthandler
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Before NumPy or PyTorch is loaded: threads of theirs would wait for one another on the cores that pytest-xdist fills,
# at several times the work. Tests of threads set how many they use.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Some virtual machines announce AMX and end a process that uses it, as PyTorch's bf16 products do.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

from fewfire import MissingDependency, _extension  # noqa: E402

settings.register_profile("fewfire", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("fewfire")


def pytest_addoption(parser):
    parser.addoption("--skipped", metavar="FILE", help="write the tests and files that are skipped, for pytest @FILE")


def pytest_configure(config):
    if _extension.load() is None:  # in processes of joblib's too, which take over the filters
        config.addinivalue_line("filterwarnings", "ignore::fewfire._errors.MissingExtensionWarning")
    if config.getoption("--skipped") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Skipped(Path(config.getoption("--skipped"))))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Small systems lack the OpenMP library that LightGBM needs: tests that grow trees are skipped there, with the remedy."""
    try:
        return (yield)
    except MissingDependency as error:
        if not str(error).startswith("Trees need LightGBM"):
            raise
        pytest.skip(str(error))


class _Skipped:
    """Writes what a run skips to a file: `.ci/run` runs it again where everything is installed."""

    def __init__(self, path):
        self.path, self.skipped = path, {}

    def pytest_collectreport(self, report):
        if report.skipped:
            self.skipped[report.nodeid] = None

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[report.nodeid] = None

    def pytest_sessionfinish(self):
        self.path.write_text("".join(f"{name}\n" for name in self.skipped), encoding="utf-8")


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C interrupts: a shell starts background jobs with it ignored, and tests that press it would wait for ever."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def patience(request):
    """Tests that are marked as long are not ended after `faulthandler_timeout`."""
    if any(request.node.get_closest_marker(name) for name in ("slow", "bench", "torture", "gpu")):
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def core():
    """The C++ part; tests of it are skipped where it is not installed."""
    module = _extension.load()
    if module is None:
        pytest.skip("the C++ part is not installed")
    return module


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    """Tables as wide as they need: workers of pytest-xdist report 80 columns."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def instruction_set():
    """Whatever variant a test selects, the next one starts with that of FEWFIRE_ISA, or the best."""
    module = _extension.load()
    before = None if module is None else module.isa()
    yield
    if module is not None:
        module.set_isa(before)


@pytest.fixture
def without_core():
    """Run as if the C++ part were not installed, with the warning already given."""
    with _extension.without_extension():
        yield
