"""Torture: hard tries at breaking things, for as long as is wished (`make torture`, `make torture-quick`).

Every test takes its share of the time from the fixture `rounds`, its randomness from `seed`, and counts what it tried in
`tally`; the counts of all tests are printed at the end as one JSON line. Nothing here asserts seconds: time only decides
how many tries there are, and every test makes at least one.
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


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.torture)


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
    """Numbers 0, 1, … until this test's share of the time is over: the time left, divided by the tests left."""
    items = request.session.items
    left = SECONDS - (time.monotonic() - request.config.stash[STARTED])
    share = max(0.0, left) / max(1, len(items) - items.index(request.node))
    return _until(time.monotonic() + share)


def _until(deadline):
    number = 0
    while number == 0 or time.monotonic() < deadline:
        yield number
        number += 1


@pytest.fixture
def tally():
    """`tally("store kills", 3)` counts what was tried."""

    def count(kind, tries=1):
        COUNTS[kind] = COUNTS.get(kind, 0) + tries

    return count


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        terminalreporter.write_line(json.dumps({"name": "torture", "seed": SEED, **dict(sorted(COUNTS.items()))}))
