"""sparse-activations/mostly-sparse: what its verdicts see and refute, on counts that are made up."""

import json

import pytest

from fewfire.papers import recipes
from fewfire.papers._statistics import share_power
from fewfire.papers.sparse_activations.recipes import mostly_sparse
from fewfire.papers.sparse_activations.recipes.mostly_sparse import MostlySparseSettings

SETTINGS = MostlySparseSettings(seeds=4, k=(1, 2, 4, 8), margins=(0.0, 0.1), samples=(60, 200, 800), steps=50)


def counts(least=50, fall=2.5, last=None, dense=600):
    """Images of 719 on which more than k fire: `least` at k = 1, fewer by a factor for each doubling."""

    def fit(k, margin, seed, steps):
        over = least / fall ** (k.bit_length() - 1)
        over = last if k == 8 and last is not None else over
        exceeding = 0 if k == 64 else max(0, round(over) - (seed % 2))
        return {"images": 719, "exceeding": exceeding, "exceeding_8": dense if k == 64 else 0, "accuracy": 0.9}

    return fit


@pytest.fixture(scope="module")
def seen():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mostly_sparse, "digits_fit", counts())
        return mostly_sparse.RECIPE.run(settings=SETTINGS)


def test_counts_as_they_were_seen(seen):
    assert seen.passed, seen.judgements
    table = seen.to_dict()
    assert json.loads(json.dumps(table)) == table
    assert len(table["cube"]) == 2 * 3 * 4 and all(row["sensitivity"] <= row["bound"] for row in table["cube"])
    assert "Pr[more than k fire] on new digits" in seen.measured[0]
    pytest.importorskip("matplotlib")
    assert len(recipes.plot(seen).axes) == 2


@pytest.mark.parametrize(
    ("options", "place"),
    [({"least": 1}, 0), ({"last": 40}, 1), ({"fall": 1.0, "last": 2}, 2), ({"dense": 100}, 3)],
    ids=["k = 1 holds", "k = 8 fails", "flat in k", "dense is sparse"],
)
def test_other_counts_are_refuted(monkeypatch, seen, options, place):
    cube = {(row["k"], row["samples"], row["seed"]): row for row in seen.data["cube"]}
    monkeypatch.setattr(mostly_sparse, "_on_cube", lambda *key: cube[key])
    monkeypatch.setattr(mostly_sparse, "digits_fit", counts(**options))
    found = mostly_sparse.RECIPE.run(settings=SETTINGS)
    assert not found.judgements[place].passed and not found.passed


def test_shares_on_the_cube_that_do_not_fall_are_refuted(seen):
    flat = [{**row, "p": 0.1} for row in seen.data["cube"]]
    risen = [{**row, "p": -row["p"]} for row in seen.data["cube"]]
    for cube in (flat, risen):
        assert not mostly_sparse.judge(seen.data["over_k"], cube)[4].passed


def test_every_power_is_stated(seen):
    powers = [entry.power.probability for entry in seen.judgements]
    assert powers[0] == pytest.approx(share_power(0.03, 0.005, 719) ** 4)
    assert powers[1] > 0.99 and powers[3] > 0.99
    assert all(entry.effect.low <= entry.effect.value <= entry.effect.high for entry in seen.judgements)
    assert seen.judgements[3].effect.high <= 1


def test_one_network_on_digits():
    found = mostly_sparse.digits_fit(2, 0.1, 0, 300)
    assert found["images"] == 719 and 0 <= found["exceeding"] < 200 and found["accuracy"] > 0.5
