"""The recipe of lottery tickets: the trial is the wide network, and each claim of C.2 can fail by itself."""

import json

import pytest

from fewfire.papers.pareto.recipes import lottery_tickets as recipe

NETWORKS = 40
CLAIMS = ("wide", "beat", "rewound", "redrawn")


def table(wide=40, rewound=34, redrawn=6):
    """So many of each learn; where fewer of the redrawn do, they are among the networks whose rewound neurons learn."""

    def steps(count):
        return [1000] * count + [None] * (NETWORKS - count)

    return {"n": 50, "k": 5, "wide": steps(wide), "rewound": steps(rewound), "redrawn": steps(redrawn)}


@pytest.mark.parametrize(
    ("found", "failing"),
    [
        (table(), set()),
        (table(wide=22), {"wide"}),
        (table(rewound=16, redrawn=2), {"rewound"}),  # lucky beyond doubt, but most rewound trainings fail
        (table(rewound=40, redrawn=24), {"redrawn"}),
        (table(rewound=5, redrawn=8), {"beat", "rewound"}),  # as one wide network's re-trainings had it, out of 30
        (table(rewound=0, redrawn=0), {"beat", "rewound"}),
    ],
)
def test_the_claims_follow_the_networks(found, failing):
    entries = recipe.judge(found)
    assert {claim for claim, entry in zip(CLAIMS, entries, strict=True) if not entry.passed} == failing
    for entry in entries:
        assert "k = 5" in entry.claim and entry.refuted_by
        assert entry.power.probability >= 0.8
        assert entry.effect.low <= entry.effect.value <= entry.effect.high


def test_it_runs_on_any_parities():
    settings = (
        recipe.LotterySettings(12, 2, 30, 3, 4, 2000, 2000, 200),
        recipe.LotterySettings(12, 3, 30, 5, 3, 1000, 500, 100),
    )
    found = recipe.RECIPE.run(settings=settings).to_dict()
    assert json.loads(json.dumps(found)) == found and len(found["judgement"]) == 8
    for entry, wanted in zip(found["parities"], settings, strict=True):
        assert len(entry["wide"]) == len(entry["rewound"]) == len(entry["redrawn"]) == wanted.networks
        for curve in entry["curves"]["rewound"]:
            assert len(curve["step"]) == len(curve["error"]) and curve["step"][0] == 0
        assert len(entry["last"]["rewound"]) == wanted.networks
    assert found["measured"][0].startswith("(12, 2)-parity: ") and "at the end" in found["measured"][1]
