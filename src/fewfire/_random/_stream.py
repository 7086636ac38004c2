"""Named random streams: a run's key and a name give the same numbers on every engine and machine.

A stream has no state. The same draw gives the same words; a caller that needs more gives the offset at which it
starts, so example 10⁶ or step 10⁵ can be drawn without drawing what comes before.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import invalid
from fewfire._extension import core
from fewfire._random._reference import normal_numbers, philox_words
from fewfire._types import Float64Array, IdArray, SignArray

_CACHED = 1 << 13
"""Normal numbers drawn at a time by the reference code: temporary arrays stay in the cache."""


def digest64(text: str) -> int:
    """The first 64 bits of the BLAKE2b hash of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Stream:
    """An endless sequence of random words, fixed by `key` and `name`.

    Parameters
    ----------
    key : int in [0, 2⁶⁴)
        The run: a seed, or the first 64 bits of its hash (`Stream.of_run`).
    name : str
        What the numbers are for: "data", "init", "batches", "test", or a child such as "init/hidden".

    Examples
    --------
    >>> import fewfire as ff
    >>> stream = ff.Stream(0, "data")
    >>> stream.words(2).tolist() == stream.words(2).tolist()  # a stream has no state
    True
    >>> stream.child("noise").name
    'data/noise'
    """

    key: int
    name: str

    def __post_init__(self) -> None:
        if isinstance(self.key, bool) or not isinstance(self.key, int | np.integer) or not 0 <= self.key < 2**64:
            raise invalid("seed", "must be an integer in [0, 2**64)", self.key, "pass a non-negative integer")

    @classmethod
    def of_run(cls, description: str, name: str) -> Stream:
        """The stream of a run that is identified by a text, such as its canonical spec."""
        return cls(digest64(description), name)

    @cached_property
    def id(self) -> int:
        """The 64-bit number of the name; the upper half of Philox's counter."""
        return digest64(self.name)

    def child(self, name: str) -> Stream:
        """An independent stream of the same run."""
        return Stream(self.key, f"{self.name}/{name}")

    def words(self, count: int, start: int = 0) -> NDArray[np.uint32]:
        """`count` uniform 32-bit words, from word `start` on."""
        extension = core()
        if extension is None:
            return philox_words(int(self.key), self.id, start, count)
        out = np.empty(count, dtype=np.uint32)
        extension.philox_words(int(self.key), self.id, start // 4, start % 4, out)
        return out

    def uniform(self, shape: int | tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Float64Array:
        """Uniform numbers in the open interval (low, high): midpoints of 2²⁴ cells, exact in float32 for (0, 1)."""
        words = self.words(math.prod(np.atleast_1d(shape)))
        unit = ((words >> np.uint32(8)).astype(np.float64) + 0.5) * 2.0**-24
        return (low + (high - low) * unit).reshape(shape)

    def normal(self, shape: int | tuple[int, ...], start: int = 0) -> Float64Array:
        """Standard normal numbers (Box–Muller, two words a number), from number `start` on."""
        numbers = np.empty(math.prod(np.atleast_1d(shape)))
        extension = core()
        if extension is not None:
            extension.normal_numbers(int(self.key), self.id, start, numbers)
            return numbers.reshape(shape)
        for begin in range(0, len(numbers), _CACHED):
            part = numbers[begin : begin + _CACHED]
            part[:] = normal_numbers(self.words(2 * len(part), 2 * (start + begin)))
        return numbers.reshape(shape)

    def integers(self, bound: int, shape: int | tuple[int, ...], start: int = 0) -> IdArray:
        """Integers in [0, bound), one word each: ⌊word·bound / 2³²⌋, off uniform by at most bound/2³² in ratio."""
        if not 1 <= bound < 2**32:
            raise invalid("bound", "must be in [1, 2**32)", bound, "draw from a smaller range")
        words = self.words(math.prod(np.atleast_1d(shape)), start).astype(np.uint64)
        return ((words * np.uint64(bound)) >> np.uint64(32)).astype(np.int64).reshape(shape)

    def signs(self, shape: int | tuple[int, ...]) -> SignArray:
        """Fair ±1, one bit each: bit j of the stream set means −1."""
        count = math.prod(np.atleast_1d(shape))
        bits = np.unpackbits(self.words((count + 31) // 32).view(np.uint8), bitorder="little", count=count)
        return (1 - 2 * bits.astype(np.int8)).reshape(shape)

    def sign_rows(self, rows: int, columns: int, start: int = 0) -> SignArray:
        """Rows start … start + rows − 1 of an endless table of fair ±1 with the given number of columns.

        A row begins at a fresh 128-bit block, so row i is the same however many rows are drawn with it.
        """
        words_per_row = 4 * ((columns + 127) // 128)
        words = self.words(rows * words_per_row, start * words_per_row).reshape(rows, words_per_row)
        signs = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=columns).view(np.int8)
        signs *= -2  # in place: millions of rows are drawn for online training
        signs += 1
        return signs

    def subsets(self, rows: int, population: int, size: int) -> IdArray:
        """For each row, `size` distinct members of range(population), uniformly (partial Fisher–Yates).

        Returns
        -------
        array of shape (rows, size), in order of drawing
        """
        if not 0 <= size <= population:
            raise invalid("size", f"must be between 0 and the population {population}", size, "draw fewer members")
        draws = self.words(rows * size).astype(np.uint64).reshape(rows, size)
        chosen = np.empty((rows, size), dtype=np.int64)
        block = max(1, (1 << 20) // max(population, 1))  # decks of at most 8 MiB at a time
        for start in range(0, rows, block):
            dealt = draws[start : start + block]
            everyone = np.arange(len(dealt))
            deck = np.tile(np.arange(population, dtype=np.int64), (len(dealt), 1))
            for position in range(size):
                left = np.uint64(population - position)
                pick = position + ((dealt[:, position] * left) >> np.uint64(32)).astype(np.int64)
                deck[everyone, position], deck[everyone, pick] = deck[everyone, pick], deck[:, position].copy()
            chosen[start : start + block] = deck[:, :size]
        return chosen

    def permutation(self, size: int, start: int = 0) -> IdArray:
        """A permutation of range(size): the stable order of `size` words, from word `start` on."""
        extension = core()
        if extension is None:
            return np.argsort(self.words(size, start), kind="stable").astype(np.int64)
        out = np.empty(size, dtype=np.int64)
        extension.permutation(int(self.key), self.id, start // 4, start % 4, out)
        return out


def as_stream(seed: int | Stream, name: str) -> Stream:
    """The stream itself, or stream `name` of the run numbered by an integer seed."""
    return seed if isinstance(seed, Stream) else Stream(seed, name)
