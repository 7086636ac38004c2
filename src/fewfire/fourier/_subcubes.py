"""A cover of all monomials of degree ≤ d by subcubes small enough for tables.

The n coordinates are split into groups of nearly equal size; a subcube is a union of d groups (of all of them when
there are fewer), so any d coordinates lie together in at least one. Each monomial is assigned to exactly one subcube
that holds it: to its own groups, filled up with the lowest-numbered other ones. `csrc/kernels/subcubes.hpp` has what
is done on a subcube; its cost is one table access per sample and a Walsh–Hadamard transform of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from fewfire._types import AnyArray, IdArray, SignArray
from fewfire.fourier._monomials import monomials

MAX_GROUP_BITS = 8
"""A group's pattern is one byte."""

MAX_TABLE_BITS = 16
"""Larger tables leave the second-level cache."""

NEAR_TABLE_BITS = 12
"""A table of 2¹² float64 still fits in the first-level cache."""

NEAR_LOOKUP_NS, FAR_LOOKUP_NS, ENTRY_NS = 0.6, 0.75, 0.65
"""Cost model, one core: a sample's access to a near or far table, and an entry's share of a transform."""


@dataclass(frozen=True, eq=False)
class Cover:
    """The subcubes for n coordinates and a degree; group g holds the coordinates bounds[g] … bounds[g + 1] − 1."""

    n: int
    degree: int
    bounds: IdArray

    @property
    def arity(self) -> int:
        """How many groups make a subcube."""
        return min(self.degree, len(self.bounds) - 1)

    @property
    def group_bits(self) -> NDArray[np.int32]:
        """Coordinates in each group, shape (groups,)."""
        return np.diff(self.bounds).astype(np.int32)

    @cached_property
    def groups(self) -> NDArray[np.int32]:
        """The groups of each subcube, ascending, shape (subcubes, arity); row s has rank s."""
        count = len(self.bounds) - 1
        chosen = np.array(list(combinations(range(count), self.arity)), dtype=np.int32)
        return np.ascontiguousarray(chosen[np.argsort(_rank(chosen))])

    @cached_property
    def assignment(self) -> tuple[IdArray, IdArray, NDArray[np.uint32]]:
        """Where each monomial is computed: (starts, order, entries).

        Subcube s computes the monomials order[starts[s] : starts[s + 1]] (indices in the order of `monomials`);
        `entries` are their table indices, aligned with `order`.
        """
        members = monomials(self.n, self.degree)
        held = members >= 0
        group = np.where(held, np.searchsorted(self.bounds, members, side="right") - 1, -1)
        own = _fill_up(group, self.arity)
        subcube = _rank(own)
        entries = np.zeros(len(members), dtype=np.uint32)
        shifts = np.zeros(len(members), dtype=np.int64)
        for k in range(self.arity):
            inside = held & (group == own[:, k, None])
            offset = np.where(inside, members - self.bounds[own[:, k], None] + shifts[:, None], 0)
            entries |= np.bitwise_or.reduce(np.where(inside, 1 << offset, 0), axis=1).astype(np.uint32)
            shifts += self.group_bits[own[:, k]]
        order = np.argsort(subcube, kind="stable").astype(np.int64)
        starts = np.searchsorted(subcube[order], np.arange(len(self.groups) + 1)).astype(np.int64)
        return starts, order, entries[order]

    def patterns(self, signs: SignArray) -> NDArray[np.uint8]:
        """The bits of each group in each row of signs (samples, n): shape (groups, samples)."""
        bits = np.ascontiguousarray((signs < 0).T).view(np.uint8)
        out = np.zeros((len(self.bounds) - 1, len(signs)), dtype=np.uint8)
        for group, (begin, end) in enumerate(zip(self.bounds[:-1], self.bounds[1:], strict=True)):
            for place, coordinate in enumerate(range(begin, end)):
                out[group] |= bits[coordinate] << np.uint8(place)
        return out


@lru_cache(maxsize=8)
def cover_of(n: int, degree: int, groups: int) -> Cover:
    """The cover with the given number of groups; degree at least 1."""
    return Cover(n, degree, np.linspace(0, n, groups + 1).round().astype(np.int64))


def choose_groups(n: int, degree: int, samples: int) -> int:
    """The number of groups whose products take least time by the cost model."""
    candidates = range(-(-n // MAX_GROUP_BITS), n + 1)
    return min(candidates, key=lambda groups: product_cost(n, degree, samples, groups))


def product_cost(n: int, degree: int, samples: int, groups: int) -> float:
    """Estimated nanoseconds on one core of one product with the given number of groups."""
    arity = min(degree, groups)
    bits = arity * -(-n // groups)
    if bits > max(MAX_TABLE_BITS, arity):
        return float("inf")
    lookup = NEAR_LOOKUP_NS if bits <= NEAR_TABLE_BITS else FAR_LOOKUP_NS
    table: float = 2.0 ** (arity * n / groups)
    return comb(groups, arity) * (samples * lookup + table * ENTRY_NS)


def _rank(chosen: AnyArray) -> IdArray:
    """The number of each row of ascending integers among all such rows: Σ_k C(row[k], k + 1)."""
    highest, size = int(chosen.max(initial=0)), chosen.shape[1]
    binomials = np.array([[comb(g, k + 1) for k in range(size)] for g in range(highest + 1)], dtype=np.int64)
    return np.asarray(binomials[chosen, np.arange(size)].sum(axis=1))


def _fill_up(group: IdArray, arity: int) -> IdArray:
    """Exactly `arity` distinct groups for each monomial, ascending, containing its own.

    `group` (monomials, degree) has those of the members, ascending from the left, −1 where there is no member.
    """
    repeated = np.zeros_like(group, dtype=bool)
    repeated[:, 1:] = group[:, 1:] == group[:, :-1]
    own = np.where(repeated, -1, group)
    for candidate in range(arity):  # at least `arity` minus its own groups of the first `arity` are not its own
        wanting = (own >= 0).sum(axis=1) < arity
        lacking = wanting & ~(own == candidate).any(axis=1)
        free = np.argmax(own < 0, axis=1)
        own[lacking, free[lacking]] = candidate
    own.sort(axis=1)
    return own[:, own.shape[1] - arity :]
