"""What a recipe is: a claim of a paper that can be run, at the scales it states, with verdicts that can fail.

A module of `recipes/PAPER/` holds its settings, `measure(settings)` and `RECIPE`, which names them and the figure that
`fewfire.report` draws. `measure` may take further keyword arguments: these are the options of the recipe.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from fewfire._blas import ONE_BLAS_THREAD
from fewfire._errors import invalid
from fewfire._validate import check_choice, did_you_mean
from fewfire.experiments.recipes._judgement import Judgement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Scale = Literal["quick", "paper"]
"""About a minute at most, or the sizes of the paper."""

Settings = TypeVar("Settings")


@dataclass(frozen=True, kw_only=True)
class RecipeOutcome:
    """What `measure` found.

    Parameters
    ----------
    parameters : dict
        What the numbers depend on.
    judgements : tuple of Judgement
    measured : tuple of str
        Sentences with the numbers that the claims do not hold themselves.
    data : dict
        Rows, curves and whatever else the figure draws; "text", where there is one, is printed as it is.
    """

    parameters: dict[str, Any]
    judgements: Sequence[Judgement]
    measured: Sequence[str] = ()
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every claim was seen."""
        return all(entry.passed for entry in self.judgements)


@dataclass(frozen=True, kw_only=True)
class RecipeResult(RecipeOutcome):
    """What a recipe measured, at which scale. `to_dict` gives the form that files have.

    Parameters
    ----------
    recipe : str
        Its name.
    scale : "quick" or "paper"
    parameters, judgements, measured, data
        As in `RecipeOutcome`.
    """

    recipe: str
    scale: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `json.dumps` takes: the data beside the other entries."""
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
        missing = [key for key in _KEYS if key not in table]
        if missing:
            rule = f"must hold {', '.join(_KEYS)}"
            raise invalid("table", rule, f"a mapping without {', '.join(missing)}", "pass what a recipe returned")
        return cls(
            recipe=table["recipe"],
            scale=table["scale"],
            parameters=table["parameters"],
            judgements=tuple(Judgement.from_dict(entry) for entry in table["judgement"]),
            measured=tuple(table["measured"]),
            data={key: value for key, value in table.items() if key not in _KEYS},
        )


_KEYS = ("recipe", "scale", "parameters", "measured", "judgement", "passed")


@dataclass(frozen=True)
class Recipe(Generic[Settings]):
    """A claim of a paper that can be run.

    Parameters
    ----------
    name : str
        "paper/recipe", as its module lies in `recipes/`.
    title : str
        What it shows, in one line.
    seconds : int
        About how long scale "quick" takes on two cores.
    expectation : str
        What to expect.
    figure : str
        Its drawing: `plot_` and this name, in `fewfire.report.recipes`.
    scales : mapping from "quick" and "paper" to settings
    measure : callable (settings, **options) -> RecipeOutcome
    paper_seconds : int, optional
        About how long scale "paper" takes on two cores, estimated from the work of both scales to a factor of three.
    busy : float
        How many of the two cores it keeps busy: 2 where it trains runs side by side.
    """

    name: str
    title: str
    seconds: int
    expectation: str
    figure: str
    scales: Mapping[Scale, Settings]
    measure: Callable[..., RecipeOutcome]
    paper_seconds: int | None = None
    busy: float = 1.0

    def work(self, scale: str) -> float:
        """Seconds of one core, about."""
        return self.busy * (self.seconds if scale == "quick" else self.paper_seconds or self.seconds)

    def takes(self, scale: str) -> str:
        """About how long a scale takes on two cores, in words."""
        if scale == "quick":
            return f"about {self.seconds} s on two cores"
        if self.paper_seconds is None:
            return "not estimated"
        return f"about {_duration(self.paper_seconds)} on two cores, estimated to a factor of three"

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
        """Measure and judge.

        Parameters
        ----------
        scale : "quick" or "paper"
        settings : optional
            Instead of those of the scale.
        **options
            Those of the recipe.
        """
        self.check_options(options, scale)
        with ONE_BLAS_THREAD:  # sums round alike however many cores there are, and however many recipes run beside
            found = self.measure(self.scales[scale] if settings is None else settings, **options)
        return RecipeResult(
            recipe=self.name,
            scale=scale,
            parameters=found.parameters,
            judgements=tuple(found.judgements),
            measured=tuple(found.measured),
            data=found.data,
        )


def _duration(seconds: int) -> str:
    """In the largest unit of which there are two."""
    units = (("days", 86_400), ("hours", 3600), ("minutes", 60))
    return next((f"{seconds / size:.0f} {name}" for name, size in units if seconds >= 2 * size), f"{seconds} s")
