"""What notebooks and prompts show of results: short texts, and HTML that is small, escaped and of no colour of its own."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import fewfire as ff
from fewfire._html import bars, card, curves, listed
from fewfire.engines import Phase, Run, Schedule
from fewfire.sweeps import MemoryStore, SqliteStore, Sweep

SPEC = {
    "name": "<b>tiny</b> & co",
    "problem": {"name": "parity", "n": 6, "k": 2},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [4, 8]},
    "data": {"samples": [20, "online"], "test_samples": 20},
    "training": {"steps": 3},
    "trials": 2,
}


@pytest.fixture(scope="module")
def result():
    problem = ff.problems.Parity(6, 2)
    X, y = problem.sample(40, seed=0)
    network = ff.networks.init.sparse(2)(6, width=8, seed=0)
    run = Run(network, Schedule(Phase(20), evaluate=5), X, y, X, y)
    return ff.engines.ReferenceEngine().train([run])[0]


@pytest.fixture(scope="module")
def store():
    store = MemoryStore()
    Sweep.from_dict(SPEC).run(store, engine="reference", executor="inline")
    return store


class Checker(HTMLParser):
    """Tags that are closed in order, and the text between them."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        assert tag in {"div", "strong", "table", "tr", "th", "td", "svg", "g", "polyline", "rect", "title"}, tag
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += f" {data}"


def shown(thing):
    """The text of what a notebook shows, after a look at its tags, size and colours."""
    html = thing if isinstance(thing, str) else thing._repr_html_()
    checker = Checker()
    checker.feed(html)
    assert checker.open == [] and len(html) < 8000
    assert set(re.findall(r'(?:stroke|fill|color)(?:=|:)"?([\w#]+)', html)) <= {"none", "currentColor"}
    return checker.text


def test_a_network(result):
    network = result.network
    assert repr(network) == "TwoLayer(inputs=6, width=8, activation=relu, dtype=float32)"
    assert "6 → 8 → 1" in shown(network) and "relu" in shown(network)
    start = ff.networks.init.sparse(2)(6, width=8, seed=0)
    assert "48, 0.333 of them non-zero" in shown(start)
    assert "IndexedTwoLayer" in shown(start.indexed("scan"))


def test_a_result(result):
    assert repr(result) == f"Result(stopped='steps', steps=20, test_error={result.test_error:.4g}, engine='reference')"
    assert repr(result.history) == "History(5 records, steps 0 to 20)"
    text = shown(result)
    assert "reference" in text and "test error and training error (dashed) by step" in text
    assert "records" in shown(result.history)


def test_a_result_without_test_data_or_network():
    X, y = ff.problems.Parity(6, 2).sample(40, seed=0)
    run = Run(ff.networks.init.dense()(6, 8, 0), Schedule(Phase(5, learning_rate=1e30)), X, y)
    (diverged,) = ff.engines.ReferenceEngine().train([run], keep_networks=False, on_divergence="record")
    assert "not kept" in shown(diverged) and "training diverged" in shown(diverged)
    assert repr(diverged).startswith("Result(stopped='diverged', steps=")


def test_a_spectrum():
    spectrum = ff.fourier.spectrum(lambda X: X[:, 0] * X[:, 2].astype(float), 4)
    assert repr(spectrum) == "Spectrum(n=4, dtype=float64)"
    assert "+1 at {0, 2}" in shown(spectrum) and "weight by degree" in shown(spectrum)
    large = ff.fourier.Spectrum(np.zeros(2**21))
    assert "weight" not in shown(large)
    assert "_weights" not in vars(large)  # nothing was computed


def test_a_sweep_and_its_store(store):
    sweep = Sweep.from_dict(SPEC)
    assert repr(sweep) == "Sweep('<b>tiny</b> & co': 16 runs, 8 settings × 2 trials)"
    text = shown(sweep)
    assert "20, online" in text and "sparse(s=2, value=1.0)" in text and "<b>tiny</b> & co" in text
    assert repr(store) == "MemoryStore(16 runs: 16 done)"
    assert "<b>tiny</b> & co" in shown(store)


def test_a_store_file_open_and_closed(store, tmp_path):
    path = tmp_path / "a'b.sqlite"
    with SqliteStore(path, write=True) as kept:
        assert repr(kept) == f"SqliteStore({str(path)!r}, 0 runs)"
        kept.add(list(store.rows()))
        assert repr(kept) == f"SqliteStore({str(path)!r}, 16 runs: 16 done)"
        assert str(path) in shown(kept)
    assert repr(kept) == f"SqliteStore({str(path)!r}, closed)"
    assert "closed" in shown(kept)


def test_everything_is_escaped():
    html = card("<script>", {"<i>": '"&<'})
    assert "<script>" not in html and "<i>" not in html and "&quot;&amp;&lt;" in html
    assert "<x>" not in curves("<x>", np.arange(2), {"<x>": np.ones(2)}) + bars("<x>", np.ones(2))


def test_drawings_of_little():
    assert curves("none", np.arange(1), {"a": np.ones(1)}) == ""
    assert curves("none", np.arange(3), {"a": np.full(3, np.nan)}) == ""
    assert "<rect" in bars("zero", np.zeros(2))
    assert shown(curves("gap", np.arange(3), {"a": np.array([1.0, np.nan, 0.0])})).strip().startswith("gap")


def test_long_lists_are_shortened():
    assert listed([]) == ""
    assert listed(range(100)) == "0, 1, 2, 3, 4, …, 99 (100)"
