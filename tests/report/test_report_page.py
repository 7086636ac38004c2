"""The page as text: one file, nothing loaded, nothing escapes, the same store gives the same bytes."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from made_up_store import cell, frontier_store, noted_store, row, spec, store_of

from fewfire import InvalidArgument
from fewfire.report import write_page
from fewfire.report._page import _joined, render_page
from fewfire.report._plots import RAMP
from fewfire.sweeps import MemoryStore, SqliteStore

NASTY = """</script><script>alert(1)</script><img src=x onerror=alert(2)>"&amp;'\u2028{{data}}"""


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_the_page_loads_nothing():
    page = render_page(frontier_store())
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", page)
    for tag, attributes in Tags(page).found:
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert not {"src", "href", "srcset", "style"} & set(attributes), (tag, attributes)


def test_only_the_pages_own_script_and_style_may_run():
    page = render_page(frontier_store())
    policy = next(a["content"] for tag, a in Tags(page).found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    for kind, pattern in (("script", r'<script type="module">(.*?)</script>'), ("style", r"<style>(.*?)</style>")):
        text = re.search(pattern, page, re.S).group(1)
        assert f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy


def test_texts_from_specs_stay_texts():
    rows = [*cell([10, None]), row(spec(trial=5), status="failed", message=NASTY)]
    page = render_page(store_of(*rows, name=NASTY))
    assert "<img" not in page and "alert(1)</script>" not in page
    assert [tag for tag, _ in Tags(page).found].count("script") == 2
    assert "<title>&lt;/script&gt;&lt;script&gt;alert(1)" in page
    data = data_of(page)
    assert data["summary"]["reasons"] == [["failed", NASTY, 1]]
    assert data["summary"]["names"] == [NASTY]


def test_the_same_store_gives_the_same_bytes(tmp_path):
    rows = list(frontier_store().rows())
    first, second = MemoryStore(), MemoryStore()
    first.add(rows)
    second.add(rows)
    assert render_page(first) == render_page(second)
    with SqliteStore(tmp_path / "s.sqlite", write=True) as store:
        store.add(rows)
    with SqliteStore(tmp_path / "s.sqlite") as one, SqliteStore(tmp_path / "s.sqlite") as other:
        assert render_page(one) == render_page(other) == render_page(first)


def test_what_the_page_holds():
    data = data_of(render_page(frontier_store()))
    (group,) = data["groups"]
    assert group["widths"] == [5, 20] and group["samples"] == [100, 200, 400]
    dense = group["starts"][0]
    assert dense["name"] == "dense"
    # id, runs, successes, low, high, diverged, failed, quartiles of steps
    assert dense["cells"][2][1:] == [2, 1, 0.0945, 0.9055, 0, 0, 20, 20, 20]
    assert dense["cells"][0][7:] == [None, None, None]
    assert dense["half"] == [400.0, 200.0]
    steps, trials, success, test, train = data["curves"]["cells"][str(dense["cells"][2][0])]
    assert data["curves"]["steps"][steps] == [0, 10, 20, 30, 40]
    assert (trials, success, data["curves"]["unit"]) == ([0, 1], [1, 0], 0.001)
    assert test == [[500, 500, 50], [500] * 5] and train == [[500, 0, 0], [500, 0, 0, 0, 0]]
    assert set(group["theory"]) == {"needed", "smallest", "lines"}


def test_notes_and_tags_are_on_the_page():
    data = data_of(render_page(noted_store()))
    assert data["notes"] == [
        {"name": "Wide", "note": "See <b>the</b>\npaper.", "tags": ["wide"]},
        {"name": "Large", "note": "", "tags": ["big", "final"]},
    ]
    settings = data["settings"]
    column = dict(zip(settings["keys"], settings["columns"], strict=True))
    told = [
        [column[key]["values"][column[key]["index"][row]] for key in ("width", "samples", "tags")] for row in range(12)
    ]
    assert {(width, samples): tags for width, samples, tags in told} == {
        ("5", "100"): "–", ("5", "200"): "–", ("5", "400"): "big, final",
        ("20", "100"): "wide", ("20", "200"): "wide", ("20", "400"): "big, final, wide",
    }  # fmt: skip
    plain = data_of(render_page(frontier_store()))
    assert plain["notes"] == [] and "tags" not in plain["settings"]["keys"]
    both = data_of(render_page({"a": noted_store(), "b": frontier_store()}))
    assert len(both["notes"]) == 2 and {"store", "tags"} < set(both["settings"]["keys"])


def test_titles_and_counts():
    page = render_page(frontier_store("Width & data"))
    assert "<h1>Width &amp; data</h1>" in page
    assert "24 training runs in 12 cells, 2 per cell: 42% of them get down to a test error of 10%." in page
    assert "<h1>Other</h1>" in render_page(frontier_store(), title="Other")
    trouble = store_of(*cell([10, 10]), row(spec(width=6), status="diverged"), row(spec(width=7), status="failed"))
    assert (
        "3 training runs in 3 cells, 0 to 2 per cell: 67% of them get down to a test error of 10%; 1 diverged and 1 failed."
        in render_page(trouble)
    )
    assert "1 training run in 1 cell, 1 per cell: " in render_page(store_of(row(spec(width=6))))
    assert "<h1>Success frontier</h1>" in render_page(trouble)


def test_empty_and_failed_stores_have_a_page():
    assert "No finished runs yet." in render_page(store_of())
    assert data_of(render_page(store_of()))["groups"] == []
    assert "No finished runs yet. 1 failed." in render_page(store_of(row(spec(), status="failed")))


def test_huge_errors_are_cut():
    (run,) = cell([None])
    run.history.test_error[:] = 1e30
    test = next(iter(data_of(render_page(store_of(run)))["curves"]["cells"].values()))[3]
    assert test == [[10**9] * 5]


def test_writing_is_whole_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    size = write_page(frontier_store(), path)
    assert path.stat().st_size == size and path.read_text(encoding="utf-8") == render_page(frontier_store())
    with pytest.raises(
        InvalidArgument,
        match=r"output must be a file that can be written \(No such file or directory\); got '.*nowhere/page.html'\.",
    ):
        write_page(frontier_store(), tmp_path / "nowhere" / "page.html")
    with pytest.raises(InvalidArgument, match=r"must be a file that can be written \(Not a directory\)"):
        write_page(frontier_store(), path / "page.html")
    with pytest.raises(InvalidArgument, match=r"must be a file that can be written \(Is a directory\)"):
        write_page(frontier_store(), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}.*"))


def luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_numbers_can_be_read_on_every_colour(mode):
    """Cells up to the fourth stop carry --on-low, from there --on-high; the ramp's lightness never turns back."""
    style = _joined(".css")
    ramp = [re.findall(rf"--ramp-{place}: (#\w{{6}});", style)[mode] for place in range(6)]
    low, high = (re.findall(rf"--on-{end}: (#\w{{6}});", style)[mode] for end in ("low", "high"))
    assert all(contrast(colour, low) >= 4.5 for colour in ramp[:4])
    assert all(contrast(colour, high) >= 4.5 for colour in ramp[3:])
    values = [luminance(colour) for colour in ramp]
    assert all((a > b) if mode == 0 else (a < b) for a, b in pairwise(values))
    text = [re.findall(rf"--{name}: (#\w{{6}});", style)[mode] for name in ("ink", "muted", "accent")]
    cards = [re.findall(rf"--{name}: (#\w{{6}});", style)[mode] for name in ("card", "surface")]
    assert all(contrast(colour, card) >= 4.5 for colour in text for card in cards)
    lines = [re.findall(rf"--{name}: (#\w{{6}});", style)[mode] for name in ("narrow", "wide", "train")]
    assert all(contrast(colour, cards[0]) >= 3 for colour in lines)


def test_figures_use_the_colours_of_the_page():
    assert [re.findall(rf"--ramp-{place}: (#\w{{6}});", _joined(".css"))[0] for place in range(6)] == list(RAMP)
