"""What a recipe is: a claim of a paper that can be run, at the scales it states, with verdicts that can fail.

A module of `papers/PAPER/recipes/` holds its settings, `measure(settings)`, its figure and `RECIPE`, of these two.
`measure` may take further keyword arguments: these are the options of the recipe.

A verdict is informative only if it could have been another. So a judgement names the outcome that would have refuted
the claim, and with what probability the test notices an effect of a stated size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from fewfire._errors import invalid
from fewfire._threads import ONE_BLAS_THREAD
from fewfire._validate import check_choice, did_you_mean

if TYPE_CHECKING:
    from matplotlib import axes, figure

Row: TypeAlias = dict[str, Any]
"""What was measured of a cell, as JSON has it."""

Info: TypeAlias = Mapping[str, Any]
Axes: TypeAlias = "axes.Axes"
Figure: TypeAlias = "figure.Figure"
"""Of plots: the result of a recipe, what it is drawn in, and what is drawn of it."""

Scale = Literal["quick", "paper"]
"""About a minute at most, or the sizes of the paper."""

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Effect:
    """How large what was claimed is: a number in the claim's own unit (`name`) with its 95% interval.

    All three numbers are alike where nothing is estimated: it is exact.
    """

    name: str
    value: float
    low: float
    high: float

    def map(self, function: Callable[[float], float], name: str | None = None) -> Effect:
        """The effect in another unit: an increasing function of the value and of both ends."""
        ends = (float(function(end)) for end in (self.value, self.low, self.high))
        return Effect(self.name if name is None else name, *ends)

    def at_most(self, claim: str, statistic: str, bound: float, refuted_by: str, power: Power) -> Judgement:
        """The verdict on the upper end."""
        return Judgement(claim, statistic, self.high, bound, "at most", refuted_by, self, power)

    def at_least(self, claim: str, statistic: str, bound: float, refuted_by: str, power: Power) -> Judgement:
        """The verdict on the lower end."""
        return Judgement(claim, statistic, self.low, bound, "at least", refuted_by, self, power)

    def __str__(self) -> str:
        if self.low == self.value == self.high:
            return f"{self.name}: {self.value:.3g}, exact"
        return f"{self.name}: {self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Power:
    """With what probability the test notices an effect of a stated size, such as "a drop from 9 in 10 to 5 in 10".

    It is computed or simulated at the sample sizes of the run; 1 where a claim is checked on every case.
    """

    effect: str
    probability: float

    def __str__(self) -> str:
        rounded = f"{self.probability:.2f}" if self.probability < 0.995 or self.probability == 1 else "above 0.99"
        return f"{rounded} for {self.effect}"


@dataclass(frozen=True)
class Judgement:
    """The verdict on one claim: the value of the statistic must be at most, or at least, the threshold.

    `refuted_by` is the outcome that would have refuted the claim, `effect` what was seen, in the claim's own unit.
    """

    claim: str
    statistic: str
    value: float
    threshold: float
    rule: Literal["at most", "at least"] = "at most"
    refuted_by: str = ""
    effect: Effect | None = None
    power: Power | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "threshold", float(self.threshold))

    @property
    def passed(self) -> bool:
        """Whether the claim was seen; NaN never is."""
        return self.value <= self.threshold if self.rule == "at most" else self.value >= self.threshold

    @property
    def test(self) -> str:
        """The statistic, what it was, and what it had to be."""
        return f"{self.statistic} = {self.value:.4g}, {self.rule} {self.threshold:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the verdict."""
        plain = asdict(self) | {"passed": self.passed}
        return {key: plain[key] for key in _JUDGEMENT_KEYS if plain[key] not in ("", None)}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Judgement:
        """The judgement of `to_dict`; the verdict is made again."""
        fields = {key: table[key] for key in _JUDGEMENT_KEYS if key in table and key != "passed"}
        for key, kind in (("effect", Effect), ("power", Power)):
            if fields.get(key) is not None:
                fields[key] = kind(**fields[key])
        return cls(**fields)


_JUDGEMENT_KEYS = ("claim", "statistic", "value", "rule", "threshold", "passed", "refuted_by", "effect", "power")


@dataclass(frozen=True, kw_only=True)
class RecipeOutcome:
    """What `measure` found: the verdicts, and the parameters on which the numbers depend.

    `measured` are sentences with the numbers that the claims do not hold themselves, `data` what the figure draws, such
    as rows and curves; "text", where there is one, is printed as it is.
    """

    parameters: dict[str, Any]
    judgements: Sequence[Judgement]
    measured: Sequence[str] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in self.parameters.items()}
        object.__setattr__(self, "parameters", plain)  # as JSON has them

    @property
    def passed(self) -> bool:
        """Whether every claim was seen."""
        return all(entry.passed for entry in self.judgements)


@dataclass(frozen=True, kw_only=True)
class RecipeResult(RecipeOutcome):
    """What the recipe of this name measured, at which scale. `to_dict` gives the form that files have."""

    recipe: str
    scale: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `json.dumps` takes: the data next to the other entries."""
        return {
            "recipe": self.recipe,
            "scale": self.scale,
            "parameters": self.parameters,
            "measured": list(self.measured),
            **self.data,
            "judgement": [entry.to_dict() for entry in self.judgements],
            "passed": self.passed,
        }

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> RecipeResult:
        """The result of `to_dict`, or of the JSON that `fewfire reproduce -o` wrote."""
        missing = [key for key in _RESULT_KEYS if key not in table]
        if missing:
            rule = f"must hold {', '.join(_RESULT_KEYS)}"
            raise invalid("table", rule, f"a mapping without {', '.join(missing)}", "pass what a recipe returned")
        return cls(
            recipe=table["recipe"],
            scale=table["scale"],
            parameters=table["parameters"],
            judgements=tuple(Judgement.from_dict(entry) for entry in table["judgement"]),
            measured=tuple(table["measured"]),
            data={key: value for key, value in table.items() if key not in _RESULT_KEYS},
        )


_RESULT_KEYS = ("recipe", "scale", "parameters", "measured", "judgement", "passed")


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[Settings]):
    """A claim of a paper that can be run.

    Parameters
    ----------
    title : str
        What it shows, in one line.
    seconds : tuple of int
        About how long the scales "quick" and "paper" take on two cores, the latter estimated from the work of both to a
        factor of three.
    expectation : str
        What to expect.
    figure : callable (info, *, ax=None) -> Figure
        Draws a result.
    quick, paper : settings
        Of the two scales.
    measure : callable (settings, **options) -> RecipeOutcome
    busy : float
        How many of the two cores it keeps busy: 2 where it trains runs concurrently.
    from_paper : tuple of str
        The claims that the paper itself makes, "*" for any text. The others are ours.
    """

    title: str
    seconds: tuple[int, int]
    expectation: str
    figure: Callable[..., Figure]
    quick: Settings
    paper: Settings
    measure: Callable[..., RecipeOutcome]
    busy: float = 1.0
    from_paper: tuple[str, ...] = ()

    def whose(self, claim: str) -> Literal["the paper's", "ours"]:
        """Whether the paper makes the claim, at whatever sizes and level it is tested."""
        return "the paper's" if any(fnmatchcase(claim, pattern) for pattern in self.from_paper) else "ours"

    @property
    def name(self) -> str:
        """ "paper/recipe", as the module of `measure` lies in `recipes/`."""
        paper, _, recipe = self.measure.__module__.split(".")[-3:]
        return f"{paper}/{recipe}".replace("_", "-")

    @property
    def scales(self) -> dict[Scale, Settings]:
        """The settings of both scales."""
        return {"quick": self.quick, "paper": self.paper}

    def work(self, scale: str) -> float:
        """Seconds of one core, about."""
        return self.busy * self.seconds[scale == "paper"]

    def takes(self, scale: str) -> str:
        """About how long a scale takes on two cores, in words."""
        quick, paper = self.seconds
        if scale == "quick":
            return f"about {quick} s on two cores"
        # In the largest unit of which there are two.
        units = (("days", 86_400), ("hours", 3600), ("minutes", 60), ("s", 1))
        length = next(f"{paper / size:.0f} {name}" for name, size in units if paper >= 2 * size)
        return f"about {length} on two cores, estimated to a factor of three"

    @property
    def options(self) -> tuple[str, ...]:
        """Keyword arguments of `measure` besides the settings."""
        return tuple(inspect.signature(self.measure).parameters)[1:]

    def check_options(self, given: Iterable[str], scale: str) -> None:
        """Refuse options and a scale that the recipe does not have."""
        check_choice("scale", scale, tuple(self.scales))
        for option in given:
            if option not in self.options:
                rule = f"must be among {', '.join(self.options)}" if self.options else "are not taken by this recipe"
                raise invalid(f"options of {self.name}", rule, option, did_you_mean(option, self.options))

    def run(self, scale: Scale = "quick", *, settings: Settings | None = None, **options: Any) -> RecipeResult:
        """Measure with the settings of a scale, or with others, and the recipe's own options; give the verdicts."""
        self.check_options(options, scale)
        with ONE_BLAS_THREAD:  # sums round alike on any number of cores, and whatever runs concurrently
            found = self.measure(self.scales[scale] if settings is None else settings, **options)
        fields = vars(found) | {"judgements": tuple(found.judgements), "measured": tuple(found.measured)}
        return RecipeResult(recipe=self.name, scale=scale, **fields)


def rows_of(info: Mapping[str, Any], *keys: str) -> list[Any]:
    """What the recipe returned under these keys; an error names the missing ones."""
    missing = [key for key in keys if not info.get(key)]
    if missing:
        wanted, absent = " and ".join([", ".join(keys[:-1]), keys[-1]] if len(keys) > 1 else keys), ", ".join(missing)
        raise invalid("info", f"must hold {wanted}", f"a mapping without {absent}", "pass what the recipe returned")
    return [info[key] for key in keys]


def grouped(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[Any, list[Any]]:
    """Rows by their value under a key, or by the tuple of several, in the order in which these first appear."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        values = tuple(row[key] for key in keys)
        found.setdefault(values if len(keys) > 1 else values[0], []).append(row)
    return found
