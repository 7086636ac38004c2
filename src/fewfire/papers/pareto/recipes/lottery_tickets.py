"""pareto, C.2 and Figure 5: the neurons that end up large were lucky from the start.

Networks of 100 neurons learn a parity of 50 bits online; of each the 5 largest neurons are rewound and trained alone
under other minibatches, and so are 5 freshly drawn ones. The trial is the wide network: one rewound and one redrawn
training per network, compared in pairs by the sign test; re-trainings of a single network would only measure its luck.
k = 5 is the figure's. Which choices matter is measured in docs/results/figure5.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from fewfire._random import Stream
from fewfire._types import Float64Array, IdArray, SignArray
from fewfire._validate import check_integer
from fewfire.engines import History, Phase, Result, Run, Schedule, get_engine
from fewfire.networks import TwoLayer, init
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, rows_of
from fewfire.papers._effects import mean, share
from fewfire.papers._second_layer import neurons
from fewfire.papers._statistics import in_most, in_most_power, simulated_power
from fewfire.papers.pareto.recipes._grid import spaced_in_log
from fewfire.problems import Parity
from fewfire.report._figure import SomeAxes, canvas
from fewfire.report._plots import TEST

LEARNED, BEGUN = 0.1, 0.3  # test errors of a training that has learned, and of one that has found much of the parity
START = init.sparse(2)
ALONE = ("rewound", "redrawn")
LEVEL = 0.01
CURVES = 14  # networks whose errors are kept for the figure


@dataclass(frozen=True)
class LotterySettings:
    """The parity of k among n bits, wide networks and how many, how many neurons are kept, and steps of both kinds."""

    n: int
    k: int
    width: int
    keep: int
    networks: int
    steps: int
    retrain_steps: int
    evaluate: int = 1000


def measure(settings: tuple[LotterySettings, ...]) -> RecipeOutcome:
    """Per parity: steps to 10% error of every network and training, None where it was not reached, and some curves."""
    parities, measured = [], []
    for entry in settings:
        groups = lottery_tickets(entry)
        steps = {name: [history.first_step(LEARNED) for history in group] for name, group in groups.items()}
        last = {name: [round(float(history.test_error[-1]), 3) for history in groups[name]] for name in ALONE}
        curves: Row = {name: [] for name in groups}
        for name, history in ((name, history) for name, group in groups.items() for history in group[:CURVES]):
            chosen = spaced_in_log(history, 24)
            errors = np.round(history.test_error[chosen], 3).tolist()
            curves[name].append({"step": history.step[chosen].tolist(), "error": errors})
        parities.append({"n": entry.n, "k": entry.k, **steps, "last": last, "curves": curves})
        parts = []
        for name, ends in steps.items():
            reached = [step for step in ends if step is not None]
            middle = f", after {np.median(reached):.0f} steps in the median" if reached else ""
            parts.append(f"{len(reached)} of {len(ends)} {name} learn{middle}")
        moved = " and ".join(f"{sum(error <= BEGUN for error in last[name])} {name}" for name in ALONE)
        measured += [
            f"({entry.n}, {entry.k})-parity: {'; '.join(parts)}",
            f"(n, k) = ({entry.n}, {entry.k}), at most {BEGUN:.0%} error at the end: {moved}",
        ]
    return RecipeOutcome(
        parameters={"parities": [asdict(entry) for entry in settings]},
        judgements=[entry for table in parities for entry in judge(table)],
        measured=measured,
        data={"parities": parities},
    )


def judge(table: Row) -> list[Judgement]:
    """The claims of C.2 on one parity, from its steps: "wide", "rewound" and "redrawn", one entry per network."""
    wide, rewound, redrawn = (learned(table[key]) for key in ("wide", *ALONE))
    networks, k = len(wide), table["k"]
    better, worse = int(np.sum(rewound > redrawn)), int(np.sum(rewound < redrawn))
    return [
        _most(f"the wide networks learn (k = {k})", wide, "half of the wide networks, or more, that never learn"),
        Judgement(
            f"rewound neurons beat redrawn ones (k = {k})",
            f"p of the sign test, {better} networks against {worse}",
            in_most(better, better + worse),
            LEVEL,
            refuted_by="networks whose rewound neurons learn and redrawn ones do not, no more common than the reverse",
            effect=mean("rewound less redrawn, share of trainings that learn, per wide network", rewound - redrawn),
            power=Power("45% of rewound and 10% of redrawn learn", _sign_power(0.45, 0.1, networks)),
        ),
        _most(f"most rewound trainings learn (k = {k})", rewound, "half of the rewound trainings, or more, that fail"),
        _most(
            f"most redrawn trainings fail (k = {k})", 1 - redrawn, "half of the redrawn trainings, or more, that learn"
        ),
    ]


def _most(claim: str, shares: Float64Array, refuted_by: str) -> Judgement:
    count, total = int(shares.sum()), len(shares)
    return Judgement(
        claim,
        f"p of the sign test, {count} of {total}",
        in_most(count, total),
        LEVEL,
        refuted_by=refuted_by,
        effect=share("share that do", count, total),
        power=Power("3 in 4 do", in_most_power(0.75, total, LEVEL)),
    )


@cache
def _sign_power(share: float, other: float, networks: int) -> float:
    def notices(rng: np.random.Generator) -> bool:
        rewound, redrawn = rng.random(networks) < share, rng.random(networks) < other
        better, worse = int((rewound & ~redrawn).sum()), int((~rewound & redrawn).sum())
        return in_most(better, better + worse) <= LEVEL

    return simulated_power(notices, 4000)


def lottery_tickets(settings: LotterySettings) -> dict[str, list[History]]:
    """Histories of wide networks, and of each the largest neurons, rewound, alone, and as many freshly drawn ones."""
    check_integer("keep", settings.keep, 1, settings.width, "keep at most as many neurons as there are")
    problem, engine = Parity(settings.n, settings.k), get_engine()
    test = problem.sample(4000, Stream(0, "test"))

    def start(stream: str) -> TwoLayer:
        return START(settings.n, settings.width, Stream(0, stream))

    def train(networks: list[TwoLayer], steps: int, trial: int, stop_error: float | None = None) -> list[Result]:
        options: dict[str, Any] = {"evaluate": settings.evaluate, "stop_error": stop_error}
        return engine.train(
            [
                online_run(network, problem, test, steps, f"lottery 0 {number} {trial}", **options)
                for number, network in enumerate(networks)
            ]
        )

    initial = [start(f"init {number}") for number in range(settings.networks)]
    wide = train(initial, settings.steps, 0)
    rewound = [
        neurons(network, largest(result.network, settings.keep)) for network, result in zip(initial, wide, strict=True)
    ]
    redrawn = [neurons(start(f"redraw {number} 0"), np.arange(settings.keep)) for number in range(settings.networks)]
    again = (train(networks, settings.retrain_steps, 1, LEARNED) for networks in (rewound, redrawn))
    found = zip(("wide", *ALONE), (wide, *again), strict=True)
    return {name: [result.history for result in results] for name, results in found}


def online_run(
    network: TwoLayer,
    problem: Parity,
    test: tuple[SignArray, SignArray],
    steps: int,
    key: str,
    *,
    evaluate: int,
    weight_decay: float = 0.0,
    stop_error: float | None = None,
) -> Run:
    """A training on fresh examples at rate 0.1; `key` decides which."""
    schedule = Schedule((Phase(steps, 0.1, weight_decay),), evaluate=evaluate, stop_error=stop_error)
    batches = Stream.of_run(key, "batches")
    return Run(network, schedule, X_test=test[0], y_test=test[1], source=problem, seed=batches)


def largest(network: TwoLayer, keep: int, rank: str = "product") -> IdArray:
    """Indices of the largest neurons, rising: by |u_j|·‖w_j‖ ("product"), ‖w_j‖ ("rows") or |u_j| ("output")."""
    rows, output = np.linalg.norm(network.hidden, axis=1), np.abs(network.output)
    size = {"product": rows * output, "rows": rows, "output": output}[rank]
    return np.sort(np.argsort(-size, kind="stable")[:keep])


def learned(steps: Sequence[int | None]) -> Float64Array:
    """1.0 for each run that learned."""
    return np.array([step is not None for step in steps], dtype=np.float64)


def plot_lottery(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """pareto/lottery-tickets: test error against steps, a row of panels per parity: wide, rewound, redrawn."""
    (parities,) = rows_of(info, "parities")
    down = len(parities)
    title = "Lottery tickets: the neurons that end up large, alone; one line per wide network"
    size = (9.2, 0.5 + 2.6 * down)
    figure, panels = canvas(3 * down, size=size, across=3, ax=ax, title=title, sharey=True, sharex="row")
    titles = {"wide": "wide network", "rewound": "rewound neurons", "redrawn": "redrawn neurons"}
    for row, table in enumerate(parities):
        for axes, (kind, title) in zip(panels[3 * row :], titles.items(), strict=False):
            for curve in table["curves"][kind]:
                axes.plot(curve["step"], curve["error"], color=TEST, alpha=0.6, linewidth=1)
            learned = sum(step is not None for step in table[kind])
            axes.axhline(LEARNED, color="black", linestyle=":", linewidth=1)
            axes.set_title(f"k = {table['k']}, {title}: {learned} of {len(table[kind])} learn", fontsize=10)
            axes.set_xscale("symlog", linthresh=1000)
            axes.set_xticks([0, 1000, 10_000, 100_000], ["0", "1k", "10k", "100k"])
            axes.set_xlim(0, 1.2 * max(curve["step"][-1] for side in table["curves"].values() for curve in side))
            axes.set_xlabel("steps")
        panels[3 * row].set_ylabel("test error")
    return figure


RECIPE = Recipe(
    title="Figure 5: rewound neurons beat redrawn ones, over many wide networks",
    seconds=(30, 400),
    expectation="wide networks learn; neurons that end up large learn alone more often than redrawn ones",
    figure=plot_lottery,
    quick=(
        LotterySettings(n=50, k=4, width=100, keep=5, networks=40, steps=40_000, retrain_steps=60_000),
        LotterySettings(n=50, k=5, width=100, keep=5, networks=40, steps=60_000, retrain_steps=150_000),
    ),
    paper=(
        LotterySettings(n=50, k=4, width=100, keep=5, networks=100, steps=100_000, retrain_steps=100_000),
        LotterySettings(n=50, k=5, width=100, keep=5, networks=100, steps=300_000, retrain_steps=300_000),
    ),
    measure=measure,
    from_paper=("*(k = 5)",),
    busy=2,
)
