"""Lottery tickets: which neurons are kept, rewound and redrawn, and where training ends."""

from dataclasses import replace

import numpy as np
import pytest

from fewfire.networks import TwoLayer
from fewfire.papers.pareto.recipes.lottery_tickets import LotterySettings, largest, lottery_tickets

SETTINGS = LotterySettings(n=12, k=2, width=30, keep=10, networks=3, steps=1000, retrain_steps=3000, evaluate=100)


def test_each_wide_network_has_a_rewound_and_a_redrawn_training():
    found = lottery_tickets(SETTINGS)
    assert [len(found[name]) for name in ("wide", "rewound", "redrawn")] == [3, 3, 3]
    assert len({history.test_error[0] for history in (*found["rewound"], *found["redrawn"])}) > 3
    again = lottery_tickets(replace(SETTINGS, networks=2))
    for name, histories in again.items():  # more networks leave those before them as they are
        for history, same in zip(histories, found[name], strict=False):
            assert history.test_error.tolist() == same.test_error.tolist()
    with pytest.raises(ValueError, match="keep must be an integer of at least 1 and at most 30; got 31"):
        lottery_tickets(replace(SETTINGS, keep=31))


def test_tickets_are_the_largest_neurons_by_the_rank_asked_for():
    hidden = np.array([[3.0, 0.0], [1.0, 1.0], [0.5, 0.0], [0.0, 2.0]])
    network = TwoLayer(hidden=hidden, bias=np.zeros(4), output=np.array([0.1, 1.0, -4.0, 0.8]))
    assert largest(network, 2, "rows").tolist() == [0, 3]
    assert largest(network, 2, "output").tolist() == [1, 2]
    assert largest(network, 2).tolist() == [2, 3]  # 0.3, 1.41, 2, 1.6


def test_a_ticket_starts_as_it_did_in_the_wide_network():
    """With every neuron kept, the rewound network is the wide one at its start; its minibatches are others."""
    found = lottery_tickets(replace(SETTINGS, keep=30, networks=1))
    (wide,), (rewound,) = found["wide"], found["rewound"]
    assert wide.test_error[0] == rewound.test_error[0] and wide.train_loss[1] != rewound.train_loss[1]


def test_retraining_stops_where_it_has_learned():
    found = lottery_tickets(SETTINGS)
    assert {history.step[-1] for history in found["wide"]} == {1000}
    ended = [history for history in found["rewound"] if history.test_error.min() <= 0.1]
    assert ended and all(h.step[-1] == h.first_step(0.1) <= 3000 and h.test_error[-1] <= 0.1 for h in ended)
