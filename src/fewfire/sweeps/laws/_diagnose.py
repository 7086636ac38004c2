"""What is short for practical SGD on a parity: data, width, steps or luck.

A resource is short when four times as much of it alone brings success to one half; four times as much luck is four runs
instead of one. Probabilities are those of `SuccessLaw`, fitted to sweeps with the schedule of pareto, C.1 (hinge loss,
learning rate 0.1, weight decay 0.01, batches of 32, no label noise); beyond what these sweeps reach nothing is
predicted. Intervals are for outcomes: the share of so many runs of a new cell that succeeds, which lies inside in 9 of
10 cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fewfire._types import Float64Array
from fewfire._validate import check_integer, check_number
from fewfire.sweeps.laws._cells import start_of
from fewfire.sweeps.laws._frontier_law import FrontierLaw, LawPrediction, shipped_law
from fewfire.sweeps.laws._success_law import SuccessLaw, check_runs, predicted_shares, shipped_success_laws

Resource: TypeAlias = Literal["data", "width", "steps", "luck"]
MORE = 4  # times as much: what `short` is defined by
HALF = 0.5
SCHEDULE = "SGD on the hinge loss, learning rate 0.1, weight decay 0.01, batches of 32"


@dataclass(frozen=True)
class PredictedProbability:
    """A predicted probability of success with its 90% predictive interval.

    Between `low` and `high` the share of `runs` runs that succeed is predicted to lie. The interval holds the binomial
    noise of the runs, what is not known of the law, and how far single cells lie from any law.
    """

    value: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        return f"{_percent(self.value)} ({_percent(self.low)} to {_percent(self.high)})"


@dataclass(frozen=True)
class FourTimes:
    """What four times as much of one resource alone would bring; no probability beyond the reach of the sweeps."""

    resource: Resource
    amount: int
    probability: PredictedProbability | None
    outside: str = ""

    @property
    def short(self) -> bool:
        """Whether it brings success to one half."""
        return self.probability is not None and self.probability.value >= HALF


@dataclass(frozen=True)
class Advice:
    """The result of `diagnose`; `outside` is what lies beyond the calibrated range, empty inside it.

    `probability` is that of success with the resources as they are, None beyond the range; `ways` are data, width,
    steps and luck; `frontier` the examples that half of the runs need at this width, given time.
    """

    probability: PredictedProbability | None
    ways: tuple[FourTimes, ...]
    frontier: LawPrediction | None
    outside: str

    @property
    def enough(self) -> bool:
        """Whether half of the runs succeed as it is."""
        return self.probability is not None and self.probability.value >= HALF

    @property
    def short(self) -> tuple[Resource, ...]:
        """What is short, that which helps most first; luck, which costs whole runs, last."""
        if self.probability is None or self.enough:
            return ()
        return tuple(way.resource for way in self._ranked if way.short)

    @property
    def nearest(self) -> Resource | None:
        """The resource of which more would help most, be it enough or not; None where nothing is short or known."""
        ranked = self._ranked
        return None if self.probability is None or self.enough or not ranked else ranked[0].resource

    @property
    def _ranked(self) -> list[FourTimes]:
        known = [way for way in self.ways if way.probability is not None]
        return sorted(
            known, key=lambda way: (way.resource == "luck", -way.probability.value if way.probability else 0.0)
        )

    def lines(self) -> list[str]:
        """The practical part in sentences."""
        if self.probability is None:
            return [f"Practical SGD: not predicted, beyond the sweeps that this stands on: {self.outside}."]
        found = [f"Practical SGD ({SCHEDULE}): {self.probability} of runs are predicted to succeed."]
        tries = f"{self.probability.runs:,} runs" if self.probability.runs > 1 else "1 run"
        found.append(
            f"In brackets: 90% intervals for the share of {tries} that succeeds; for luck, of as many groups of four."
        )
        ways = {way.resource: way for way in self.ways}
        if self.enough:
            found.append("Nothing is short.")
        elif self.short:
            parts = [f"{name} ({_amount(ways[name])}: {ways[name].probability})" for name in self.short]
            found.append(f"Short of {', or of '.join(parts)}.")
        elif self.nearest is not None:
            way = ways[self.nearest]
            best = f"nearest comes {way.resource} ({_amount(way)}: {way.probability})"
            found.append(f"Four times as much of nothing alone brings success to one half; {best}.")
        found += [f"Four times the {way.resource} is not predicted: {way.outside}." for way in self.ways if way.outside]
        if self.frontier is not None:
            found.append(f"Half of the runs of this width need about {self.frontier}, given time.")
        return found


def diagnose(
    n: int,
    k: int,
    *,
    width: int,
    samples: int,
    steps: int,
    init: str = "sparse",
    noise: float = 0.0,
    runs: int = 20,
    laws: dict[tuple[int, str], SuccessLaw] | None = None,
    law: FrontierLaw | None = None,
) -> Advice:
    """Which of data, width, steps and luck is short for an (n, k)-parity: four times as much brings success to a half.

    Parameters
    ----------
    n, k : int
    width, samples, steps : int
        What a run has.
    init : "sparse" (two inputs per neuron), "dense", or the name of a start that `laws` has
    noise : float
        The probability that a label is flipped. The sweeps have none, so nothing is predicted for others.
    runs : int
        How many runs the 90% intervals are for, up to 1000: fewer runs vary more.
    laws : dict, optional
        Success laws by k and start; by default those of the shipped sweeps.
    law : FrontierLaw, optional
        The law of data; by default that of the shipped sweeps.

    Examples
    --------
    >>> from fewfire.sweeps.laws import diagnose
    >>> advice = diagnose(28, 3, width=20, samples=4000, steps=1500)
    >>> advice.probability.low <= advice.probability.value <= advice.probability.high, advice.probability.runs
    (True, 20)
    """
    check_integer("n", n, 2)
    check_integer("k", k, 1, n, "a parity has at most n bits")
    for name, value in (("width", width), ("samples", samples), ("steps", steps)):
        check_integer(name, value, 1)
    check_number("noise", noise, 0.0, HALF, open_high=True)
    runs = check_runs(runs)
    start = start_of(init)
    laws = shipped_success_laws() if laws is None else laws
    known = laws.get((k, start))
    if known is None or noise:
        kinds = ", ".join(f"k = {bits} from {name}" for bits, name in sorted(laws))
        beyond = f"noise {noise:g} (calibrated without)" if noise else f"k = {k} from {start} (calibrated: {kinds})"
        return Advice(None, (), None, beyond)
    if beyond := known.outside(n, width, samples, steps):
        return Advice(None, (), None, beyond)
    now = known.draws(n, width, samples, steps)
    have: dict[Resource, int] = {"width": width, "data": samples, "steps": steps}
    ways = []
    resources: tuple[Resource, ...] = ("data", "width", "steps")
    for resource in resources:
        more = have | {resource: MORE * have[resource]}
        beyond = known.outside(n, *more.values())
        found = None if beyond else _probability(known.draws(n, *more.values()), runs)
        ways.append(FourTimes(resource, more[resource], found, beyond))
    ways.append(FourTimes("luck", MORE, _probability(1 - (1 - now) ** MORE, runs)))
    law = shipped_law() if law is None else law
    inside = not law.outside(n, k, width, start)
    return Advice(_probability(now, runs), tuple(ways), law.predict(n, k, width, start) if inside else None, "")


def _probability(drawn: Float64Array, runs: int) -> PredictedProbability:
    return PredictedProbability(float(drawn.mean()), *predicted_shares(drawn, runs), runs)


def _amount(way: FourTimes) -> str:
    units = {"data": "examples", "width": "neurons", "steps": "steps", "luck": "runs"}
    return f"{way.amount:,} {units[way.resource]}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if 0.005 <= share <= 0.995 or share in (0.0, 1.0) else "<1%" if share < 0.5 else ">99%"
