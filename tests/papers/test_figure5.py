"""tools/figure5.py: a tiny table measured and continued, and its page."""

import json

import figure5
import pytest
from figure5 import Wide


@pytest.fixture
def main(monkeypatch, tmp_path):
    """Calls the command on three small networks; its exit status."""
    tiny = Wide(k=2, width=6, keep=2, steps=60, retrain_steps=40, networks=3)
    kinds = ("product", "redrawn", "rows", "output", "hidden", "alone", "others")
    for name, value in (("BITS", 8), ("EVALUATE", 20), ("LEARNED", 0.45), ("TABLE", ((tiny, kinds),))):
        monkeypatch.setattr(figure5, name, value)
    monkeypatch.setattr(figure5.Wide, "__init__", figure5.Wide.__init__)

    def call(verb):
        monkeypatch.setattr("sys.argv", ["figure5", verb, str(tmp_path)])
        return figure5.main()

    return call


@pytest.mark.usefixtures("core")
def test_kinds_that_exist_are_not_trained_again(main, monkeypatch, tmp_path):
    assert main("run") == 0
    (entry,) = json.loads((tmp_path / "figure5.json").read_text())
    assert set(entry["kinds"]) == {"product", "redrawn", "rows", "output", "hidden", "alone", "others"}
    assert all(len(steps) == 3 for steps in entry["kinds"].values())
    assert all(step is None or step % 20 == 0 for steps in entry["kinds"].values() for step in steps)
    assert len(entry["lucky"]) == len(entry["wide"]) == len(entry["pruned"]["rows"]) == 3
    short = [entry | {"kinds": {kind: entry["kinds"][kind] for kind in ("product", "redrawn")}}]
    (tmp_path / "figure5.json").write_text(json.dumps(short))
    real, seen = figure5.measure, []
    monkeypatch.setattr(figure5, "measure", lambda setting, kinds: seen.append(kinds) or real(setting, kinds))
    assert main("run") == 0
    assert seen == [["rows", "output", "hidden", "alone", "others"]]
    assert json.loads((tmp_path / "figure5.json").read_text()) == [entry]


def test_the_page_compares_within_pairs(main, monkeypatch, tmp_path):
    monkeypatch.setattr(figure5, "TABLE", ((Wide(), ()),))
    steps = {"product": [20, 20, 20, None], "redrawn": [20, None, None, None]}
    setting = figure5.asdict(Wide()) | {"networks": 4}
    entry = {"setting": figure5.asdict(Wide()), "lucky": [0, 1, 2, 5], "wide": [20, 20, None, None], "kinds": steps}
    entry |= {"pruned": {rank: [0.0, 0.5, 0.5, 0.05] for rank in figure5.RANKS}}
    (tmp_path / "figure5.json").write_text(json.dumps([entry]))
    assert main("page") == 0
    text = (tmp_path / "figure5.md").read_text()
    assert setting["networks"] == 4
    assert "| k = 5, 100k + 150k steps | tickets by the product of both layers' norms | 75% (" in text
    assert "| redrawn | 25% (" in text and "+50% (" in text
    assert "| k = 5, 100k + 150k steps | two or more | 2 | 50% (" in text
    assert "50% of the wide networks learn; pruned and not trained again, 50% by product" in text
