"""What a recipe says of a claim: the verdict, the effect seen with its interval, what would have refuted it, the power.

A verdict says something only if it could have been another. So a judgement names the outcome that would have refuted
the claim, and with what probability the test notices an effect of a stated size.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Effect:
    """How large what was claimed is: a number in the claim's own unit with its 95% interval.

    Parameters
    ----------
    name : str
        What the number is, with its unit.
    value, low, high : float
        All three alike where nothing is estimated: the number is exact.
    """

    name: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.value == self.high:
            return f"{self.name}: {self.value:.3g}, exact"
        return f"{self.name}: {self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Power:
    """With what probability the test notices an effect of a stated size.

    Parameters
    ----------
    effect : str
        The size, in words: "a drop from 9 in 10 to 5 in 10".
    probability : float
        Computed or simulated at the sample sizes of the run; 1 where a claim is checked on every case.
    """

    effect: str
    probability: float

    def __str__(self) -> str:
        rounded = f"{self.probability:.2f}" if self.probability < 0.995 or self.probability == 1 else "above 0.99"
        return f"{rounded} for {self.effect}"


@dataclass(frozen=True)
class Judgement:
    """The verdict on one claim: the statistic must be at most, or at least, the threshold.

    Parameters
    ----------
    claim, statistic : str
        What is claimed, and by what it is judged.
    value, threshold : float
    rule : "at most" or "at least"
    refuted_by : str
        The outcome that would have refuted the claim.
    effect : Effect, optional
        What was seen, in the claim's own unit.
    power : Power, optional
        How likely the test notices an effect of a stated size.
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
        table: dict[str, Any] = {
            "claim": self.claim,
            "statistic": self.statistic,
            "value": self.value,
            "rule": self.rule,
            "threshold": self.threshold,
            "passed": self.passed,
        }
        if self.refuted_by:
            table["refuted_by"] = self.refuted_by
        return table | {
            key: asdict(entry) for key, entry in (("effect", self.effect), ("power", self.power)) if entry is not None
        }

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Judgement:
        """The judgement of `to_dict`; the verdict is made again."""
        return cls(
            table["claim"],
            table["statistic"],
            table["value"],
            table["threshold"],
            table["rule"],
            refuted_by=table.get("refuted_by", ""),
            effect=Effect(**table["effect"]) if table.get("effect") else None,
            power=Power(**table["power"]) if table.get("power") else None,
        )
