"""What a recipe says about itself, and the form of its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._validate import check_choice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SCALES = ("quick", "paper")


@dataclass(frozen=True)
class Recipe:
    """A claim of a paper that can be run.

    Parameters
    ----------
    name : str
        "paper/recipe".
    title : str
        What it shows, in one line.
    seconds : int
        About how long scale "quick" takes on two cores.
    expectation : str
        What to expect.
    options : tuple of str
        Keyword arguments of its `run` besides the scale.
    """

    name: str
    title: str
    seconds: int
    expectation: str
    options: tuple[str, ...] = ()

    def check_options(self, given: Iterable[str]) -> None:
        """Refuse options that the recipe does not take."""
        for option in given:
            if option not in self.options:
                rule = f"must be among {', '.join(self.options)}" if self.options else "are not taken by this recipe"
                raise invalid(f"options of {self.name}", rule, option)


def check_scale(scale: str) -> bool:
    """Whether the scale is "paper"; "quick" is the other one."""
    return check_choice("scale", scale, SCALES) == "paper"


def judgement(claim: str, statistic: str, value: float, threshold: float, *, at_most: bool = True) -> dict[str, Any]:
    """The verdict on one claim: the statistic must be at most, or at least, the threshold."""
    passed = value <= threshold if at_most else value >= threshold
    return {
        "claim": claim,
        "statistic": statistic,
        "value": float(value),
        "rule": "at most" if at_most else "at least",
        "threshold": float(threshold),
        "passed": bool(passed),
    }


def result(
    recipe: Recipe,
    scale: str,
    parameters: dict[str, Any],
    judgements: list[dict[str, Any]],
    *,
    measured: Sequence[str] = (),
    **data: Any,
) -> dict[str, Any]:
    """What `run` returns; `measured` are sentences with the numbers that the claims do not hold themselves."""
    return {
        "recipe": recipe.name,
        "scale": scale,
        "parameters": parameters,
        "measured": list(measured),
        **data,
        "judgement": judgements,
        "passed": all(entry["passed"] for entry in judgements),
    }
