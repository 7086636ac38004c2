"""Torture: hard tries at breaking things, for as long as is wished (`make torture`, `make torture-quick`).

Every test takes its share of the time from the fixture `rounds`, its randomness from `seed`, and counts what it tried in
`tally`; the counts of all tests are printed at the end as one JSON line. Nothing here asserts seconds: time only decides
how many tries there are. Its mark `least` gives the least number of each kind of try: on a slow machine a test goes on
beyond its share until it has made them, and without them it fails.
"""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

SEED = int(os.environ.get("FEWFIRE_TORTURE_SEED", "0"))
SECONDS = float(os.environ.get("FEWFIRE_TORTURE_SECONDS", "120"))
COUNTS: dict[str, int] = {}
LEAST: dict[str, int] = {}
IDLE = 300  # rounds in a row that add nothing to what is missing, before a test gives up


def pytest_configure(config):
    config.addinivalue_line("markers", "least(tries): the least number of each kind of try, a dict")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.torture)
            for kind, number in least(item).items():
                assert kind not in LEAST, f"two tests count {kind}"
                LEAST[kind] = number


def least(item):
    """The mark of a test as a dict."""
    mark = item.get_closest_marker("least")
    return {} if mark is None else mark.args[0]


def missing(item):
    """The kinds of which a test has not tried enough, with the number tried."""
    return {kind: COUNTS.get(kind, 0) for kind, number in least(item).items() if COUNTS.get(kind, 0) < number}


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    done = yield
    lacking = missing(pyfuncitem)
    assert not lacking, f"too few tries: {lacking} of at least {least(pyfuncitem)}"
    return done


def pytest_sessionstart(session):
    session.config.stash[STARTED] = time.monotonic()


STARTED = pytest.StashKey[float]()


@pytest.fixture
def seed():
    """The seed of this session; another one tries other things."""
    return SEED


@pytest.fixture
def draw(request):
    """A generator of its own for each test, fixed by the seed and the test's name."""
    return np.random.default_rng([SEED, *request.node.name.encode()])


@pytest.fixture
def rounds(request):
    """Numbers 0, 1, … until this test's share of the time is over and the least numbers of tries are reached.

    The share is the time left, divided by the tests left.
    """
    items = request.session.items
    assert least(request.node), "a test that takes rounds has the mark `least`"
    left = SECONDS - (time.monotonic() - request.config.stash[STARTED])
    share = max(0.0, left) / max(1, len(items) - items.index(request.node))
    return _until(time.monotonic() + share, request.node)


def _until(deadline, item):
    number = idle = 0
    lacking = missing(item)
    while time.monotonic() < deadline or (lacking and idle < IDLE):
        yield number
        number += 1
        before, lacking = lacking, missing(item)
        idle = idle + 1 if lacking == before else 0


@pytest.fixture
def tally():
    """`tally("store kills", 3)` counts what was tried."""

    def count(kind, tries=1):
        COUNTS[kind] = COUNTS.get(kind, 0) + tries

    return count


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        line = {"name": "torture", "seed": SEED, **dict(sorted(COUNTS.items())), "least": dict(sorted(LEAST.items()))}
        terminalreporter.write_line(json.dumps(line))
    if untried := sorted(LEAST.keys() - COUNTS.keys()):
        terminalreporter.write_line(f"torture: not tried here: {', '.join(untried)}")
