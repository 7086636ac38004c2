"""Objects as keys by identity: thousands of runs of a sweep share one schedule and a few problems."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fewfire.engines._run import describe

if TYPE_CHECKING:
    from fewfire.engines._run import Source

T = TypeVar("T")


class Same(Generic[T]):
    """An object as a key: equal only to itself, because schedules and problems may hold what cannot be hashed."""

    def __init__(self, of: T) -> None:
        self.of = of

    def __hash__(self) -> int:
        return id(self.of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.of is other.of


def told(source: Source) -> tuple[dict[str, Any] | None, str]:
    """What a source says of itself, and that as a text: worked out once per object."""
    return _told(Same(source))


@lru_cache(maxsize=1024)
def _told(same: Same[Source]) -> tuple[dict[str, Any] | None, str]:
    description = describe(same.of)
    return description, repr(description)
