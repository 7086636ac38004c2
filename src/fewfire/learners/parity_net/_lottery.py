"""Lottery tickets (pareto, C.2): are the neurons that end up large lucky from the start?

A wide network is trained; its `keep` neurons of largest weight norm are rewound to their initial weights and trained
alone under other random minibatches. Beside them, as many freshly drawn neurons are trained the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._random import Stream
from fewfire._validate import check_integer
from fewfire.engines import History, Phase, Run, Schedule, get_engine
from fewfire.networks import init

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.engines import Source
    from fewfire.networks import TwoLayer


@dataclass(frozen=True, eq=False)
class LotteryTickets:
    """What the experiment found.

    Attributes
    ----------
    kept : int array of shape (keep,)
        The neurons of the wide network that were rewound.
    wide : History
        Training of the wide network.
    rewound, redrawn : lists of History
        Training of the rewound neurons, and of freshly drawn ones, one per trial.
    """

    kept: IdArray
    wide: History
    rewound: list[History]
    redrawn: list[History]

    def success(self, error: float = 0.1) -> tuple[float, float]:
        """Shares of rewound and of redrawn trials whose last test error is at most `error`."""
        last = [np.array([h.test_error[-1] for h in group]) for group in (self.rewound, self.redrawn)]
        return float(np.mean(last[0] <= error)), float(np.mean(last[1] <= error))

    def steps_to(self, error: float = 0.1) -> tuple[Float64Array, Float64Array]:
        """First recorded step with at most this test error, for rewound and redrawn trials; inf where never."""
        return tuple(np.array([_first(h, error) for h in group]) for group in (self.rewound, self.redrawn))  # type: ignore[return-value]


def lottery_tickets(
    source: Source,
    inputs: int,
    *,
    width: int = 100,
    keep: int = 5,
    sparsity: int = 2,
    trials: int = 20,
    steps: int = 100_000,
    learning_rate: float = 0.1,
    weight_decay: float = 0.0,
    batch_size: int = 32,
    test_examples: int = 10_000,
    engine: str = "auto",
    seed: int = 0,
) -> LotteryTickets:
    """Train wide, keep the largest neurons, rewind and retrain them; against redrawn neurons.

    Parameters
    ----------
    source : Source
        Fresh examples, such as a problem; the paper's figure has the (50, 5)-parity.
    inputs : int
    width, keep : int
        Neurons of the wide network, and how many are kept (100 and 5 in the paper).
    """
    check_integer("keep", keep, 1, width, "keep at most as many neurons as there are")
    check_integer("trials", trials, 1)
    start = init.sparse(sparsity)
    test = source.sample(test_examples, Stream(seed, "test"))
    schedule = Schedule((Phase(steps, learning_rate, weight_decay, batch_size=batch_size),))
    trainer = get_engine(engine)

    def run(network: TwoLayer, number: int) -> Run:
        # Online runs draw fresh examples from their own stream, so each trial sees other data in another order.
        key = Stream.of_run(f"lottery {seed} {number}", "batches")
        return Run(network, schedule, X_test=test[0], y_test=test[1], source=source, seed=key)

    initial = start(inputs, width, Stream(seed, "init"))
    wide = trainer.train([run(initial, 0)])[0]
    kept = np.sort(np.argsort(-_neuron_norms(wide.network), kind="stable")[:keep])
    ticket = _some_neurons(initial, kept)
    fresh = [start(inputs, width, Stream(seed, f"redraw {trial}")) for trial in range(trials)]
    first = np.arange(keep)
    others = [_some_neurons(network, first) for network in fresh]
    runs = [run(ticket, 1 + trial) for trial in range(trials)]
    runs += [run(network, 1 + trial) for trial, network in enumerate(others)]
    histories = [result.history for result in trainer.train(runs)]
    return LotteryTickets(kept, wide.history, histories[:trials], histories[trials:])


def _some_neurons(network: TwoLayer, ids: AnyArray) -> TwoLayer:
    return network.with_parameters(hidden=network.hidden[ids], bias=network.bias[ids], output=network.output[ids])


def _neuron_norms(network: TwoLayer) -> AnyArray:
    """|u_j|·‖w_j‖: what a neuron can contribute, whatever the balance of its two layers."""
    return np.asarray(np.abs(network.output) * np.linalg.norm(network.hidden, axis=1))


def _first(history: History, error: float) -> float:
    step = history.first_step(error)
    return np.inf if step is None else float(step)
