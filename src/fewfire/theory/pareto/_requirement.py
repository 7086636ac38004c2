"""What an upper bound asks for."""

from __future__ import annotations

from dataclasses import dataclass

from fewfire._errors import invalid


@dataclass(frozen=True)
class Requirement:
    """Resources with which a theorem promises success, at one sparsity.

    `least_sparsity` is what the theorem asks of s; `covered` says whether s (and n above it) meets that.
    """

    statement: str
    n: int
    sparsity: int
    width: float
    samples: float
    steps: float
    least_sparsity: float = 0.0

    @property
    def covered(self) -> bool:
        """Whether the sparsity is one the theorem speaks of."""
        return self.least_sparsity <= self.sparsity < self.n

    def short(self, width: float, samples: float, steps: float) -> dict[str, float]:
        """The resources that fall short, with the amount asked for; empty when all suffice."""
        have = {"width": width, "samples": samples, "steps": steps}
        return {name: getattr(self, name) for name, value in have.items() if value < getattr(self, name)}


def check_even(name: str, value: int, statement: str) -> None:
    """Refuse an odd number that a statement excludes."""
    if value % 2:
        raise invalid(name, f"must be even ({statement})", value, "the theorem does not treat odd ones")
