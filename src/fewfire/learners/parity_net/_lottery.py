"""Lottery tickets (pareto, C.2): are the neurons that end up large lucky from the start?

Wide networks are trained; of each the `keep` largest neurons are rewound to their initial weights and trained alone
under other random minibatches. Beside them, as many freshly drawn neurons are trained the same way. What varies is the
wide network: its re-trainings share a ticket and are no independent evidence, so shares are given per wide network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from fewfire._random import Stream
from fewfire._validate import check_choice, check_integer
from fewfire.engines import History, Phase, Run, Schedule, get_engine
from fewfire.networks import init

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.engines import Source
    from fewfire.networks import TwoLayer

TicketRank = Literal["product", "rows", "output"]
"""What is large: |u_j|·‖w_j‖, what a neuron can contribute whatever its layers' balance, or one of its factors."""


@dataclass(frozen=True, eq=False)
class LotteryTickets:
    """What the experiment found.

    Attributes
    ----------
    kept : int array of shape (networks, keep)
        The neurons of each wide network that were rewound.
    wide : list of History
        Training of the wide networks.
    rewound, redrawn : lists of lists of History
        Training of the rewound neurons, and of freshly drawn ones: one list per wide network, one entry per trial.
    """

    kept: IdArray
    wide: list[History]
    rewound: list[list[History]]
    redrawn: list[list[History]]

    def success(self, error: float = 0.1) -> tuple[Float64Array, Float64Array]:
        """Shares of rewound and of redrawn trials that reach this test error, one per wide network."""
        rewound, redrawn = (np.isfinite(steps).mean(axis=1) for steps in self.steps_to(error))
        return rewound, redrawn

    def steps_to(self, error: float = 0.1) -> tuple[Float64Array, Float64Array]:
        """First recorded step with at most this test error, shape (networks, trials), rewound and redrawn; else inf."""
        rewound, redrawn = (
            np.array([[_first(history, error) for history in trials] for trials in group])
            for group in (self.rewound, self.redrawn)
        )
        return rewound, redrawn


def lottery_tickets(
    source: Source,
    inputs: int,
    *,
    networks: int = 20,
    width: int = 100,
    keep: int = 5,
    sparsity: int = 2,
    trials: int = 1,
    steps: int = 100_000,
    retrain_steps: int | None = None,
    rank: TicketRank = "product",
    learning_rate: float = 0.1,
    weight_decay: float = 0.0,
    batch_size: int = 32,
    test_examples: int = 10_000,
    evaluate: int | Literal["log"] = "log",
    stop_error: float | None = None,
    engine: str = "auto",
    threads: int | None = None,
    seed: int = 0,
) -> LotteryTickets:
    """Train wide networks, keep the largest neurons of each, rewind and retrain them; against redrawn neurons.

    Parameters
    ----------
    source : Source
        Fresh examples, such as a problem; the paper's figure has the (50, 5)-parity.
    inputs : int
    networks : int
        How many wide networks: the number of independent pairs of rewound and redrawn neurons.
    width, keep : int
        Neurons of a wide network, and how many are kept (100 and 5 in the paper).
    sparsity : int
        Weights per neuron at the start.
    trials : int
        Re-trainings of each kind per wide network. They share its ticket: more networks tell more than more trials.
    steps, retrain_steps : int
        Steps of the wide networks, and of the re-trainings; as many by default.
    rank : "product", "rows" or "output"
        Which neurons count as the largest at the end: by |u_j|·‖w_j‖, ‖w_j‖ or |u_j|.
    learning_rate, weight_decay, batch_size
        Of all trainings.
    test_examples : int
    evaluate : int or "log"
        When errors are recorded, as in `engines.Schedule`.
    stop_error : float, optional
        Re-trainings stop at this test error.
    engine : str
    threads : int, optional
        Of the C++ kernels; all cores by default.
    seed : int

    Examples
    --------
    >>> import fewfire as ff
    >>> problem = ff.problems.Parity(10, 2)
    >>> tickets = ff.learners.lottery_tickets(problem, 10, networks=2, width=20, keep=3, steps=500, test_examples=200)
    >>> tickets.kept.shape  # the neurons kept of each network
    (2, 3)
    """
    check_integer("networks", networks, 1)
    check_integer("keep", keep, 1, width, "keep at most as many neurons as there are")
    check_integer("trials", trials, 1)
    check_choice("rank", rank, get_args(TicketRank))
    start = init.sparse(sparsity)
    test = source.sample(test_examples, Stream(seed, "test"))
    trainer = get_engine(engine, threads=threads)

    def schedule(count: int, stop: float | None) -> Schedule:
        phase = Phase(count, learning_rate, weight_decay, batch_size=batch_size)
        return Schedule((phase,), evaluate=evaluate, stop_error=stop)

    training, again = schedule(steps, None), schedule(retrain_steps or steps, stop_error)

    def run(network: TwoLayer, plan: Schedule, *number: int) -> Run:
        # Online runs draw fresh examples from their own stream, so each trial sees other data in another order.
        key = Stream.of_run(f"lottery {seed} {' '.join(map(str, number))}", "batches")
        return Run(network, plan, X_test=test[0], y_test=test[1], source=source, seed=key)

    places = range(networks)
    initial = [start(inputs, width, Stream(seed, f"init {place}")) for place in places]
    wide = trainer.train([run(initial[place], training, place, 0) for place in places])
    kept = np.stack([_largest(result.network, keep, rank) for result in wide])
    tickets = [_some_neurons(initial[place], kept[place]) for place in places]
    pairs = [(place, trial) for place in places for trial in range(trials)]
    fresh = [start(inputs, width, Stream(seed, f"redraw {place} {trial}")) for place, trial in pairs]
    runs = [run(tickets[place], again, place, 1 + trial) for place, trial in pairs]
    # A redrawn neuron has the wide network's distribution, so that only its luck differs, and its rival's minibatches.
    others = [_some_neurons(network, np.arange(keep)) for network in fresh]
    runs += [run(network, again, place, 1 + trial) for network, (place, trial) in zip(others, pairs, strict=True)]
    found = [result.history for result in trainer.train(runs)]
    rewound, redrawn = found[: len(pairs)], found[len(pairs) :]
    return LotteryTickets(kept, [result.history for result in wide], _rows(rewound, trials), _rows(redrawn, trials))


def _rows(histories: list[History], trials: int) -> list[list[History]]:
    return [histories[place : place + trials] for place in range(0, len(histories), trials)]


def _some_neurons(network: TwoLayer, ids: AnyArray) -> TwoLayer:
    return network.with_parameters(hidden=network.hidden[ids], bias=network.bias[ids], output=network.output[ids])


def _largest(network: TwoLayer, keep: int, rank: TicketRank) -> IdArray:
    """The ids of the largest neurons, rising."""
    rows, output = np.linalg.norm(network.hidden, axis=1), np.abs(network.output)
    size = {"product": rows * output, "rows": rows, "output": output}[rank]
    return np.sort(np.argsort(-size, kind="stable")[:keep])


def _first(history: History, error: float) -> float:
    step = history.first_step(error)
    return np.inf if step is None else float(step)
