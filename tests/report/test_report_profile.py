"""The section about a PyTorch model's activity: from plain data, so that no PyTorch is needed to draw it."""

import copy
import json

import pytest
from made_up_store import frontier_store
from test_report_page import NASTY, data_of

from fewfire import InvalidArgument
from fewfire.report import plot_profile, write_page
from fewfire.report._page import render_page
from fewfire.report._profile import profile_info

BLOCK = {
    "block": {
        "label": "layers.0[fc1, fc2]",
        "inputs": 8,
        "width": 24,
        "outputs": 8,
        "activation": "relu",
        "gate": None,
        "gated": None,
        "reason": None,
    },
    "tokens": 600,
    "mean": 0.05,
    "percentiles": {"5": 0.02, "95": 0.09},
    "union": 0.7,
    "concentration": 0.4,
    "dead": 3,
    "k": 4,
    "W": 1.25,
    "B": 0.5,
    "gains": {"1": 4.5, "16": 1.5},
}
SMOOTH = copy.deepcopy(BLOCK) | {"mean": 1.0, "W": None, "B": None, "gains": {}}
SMOOTH["block"] |= {"label": NASTY, "activation": "silu", "gate": "gate_proj", "reason": "silu has no exact zeros"}
PROFILE = {"model": "Net", "threads": 2, "batches": 3, "missed": [], "blocks": [BLOCK, SMOOTH]}


def test_plain_data():
    info = profile_info(PROFILE)
    first, second = info["blocks"]
    assert (info["model"], info["tokens"], info["threads"]) == ("Net", 600, 2)
    assert (first["label"], first["shape"], first["activation"]) == ("layers.0[fc1, fc2]", "8 → 24 → 8", "relu")
    assert [first[name] for name in ("fire", "low", "high", "few", "gains")] == [0.05, 0.02, 0.09, 0.4, [4.5, 1.5]]
    assert (second["activation"], second["gains"], second["W"]) == ("silu gated", [None, None], None)


def test_a_page_of_its_own_and_a_section_of_a_stores(tmp_path):
    page = render_page(None, profile=PROFILE)
    assert "<h1>Net</h1>" in page and "<img" not in page
    assert "2 MLP blocks, up to 600 tokens each: 52.5% of the neurons fire on a token." in page
    data = data_of(page)
    assert data["groups"] == [] and data["profile"]["blocks"][1]["label"] == NASTY
    page = render_page(frontier_store("Sweep"), profile=PROFILE)
    assert "<h1>Sweep</h1>" in page and "24 training runs" in page
    assert data_of(page)["profile"] == data["profile"]
    assert data_of(render_page(frontier_store()))["profile"] is None
    size = write_page(None, tmp_path / "p.html", title="Mine", profile=PROFILE)
    assert (tmp_path / "p.html").stat().st_size == size


def test_the_figure():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (make test installs it)")
    left, right = plot_profile(PROFILE).axes
    assert [bar.get_width() for bar in left.patches] == pytest.approx([5.0, 100.0])
    assert next(text.get_text() for text in left.get_yticklabels()) == "layers.0[fc1, fc2]"
    assert [points.get_offsets().tolist() for points in right.collections] == [[[4.5, 0.0]], [[1.5, 0.0]]]


def test_what_is_not_a_profile():
    for wrong in ({}, {"blocks": []}, {"blocks": [1], "model": "x", "threads": 1}, json.loads('{"blocks": null}')):
        with pytest.raises(
            InvalidArgument, match="profile must be a profile of a model; got a mapping that is not one"
        ):
            profile_info(wrong)
    with pytest.raises(InvalidArgument) as caught:
        render_page(None)
    assert str(caught.value) == (
        "source must be a store where there is no profile; got None. Remedy: pass a store, a profile or both."
    )
