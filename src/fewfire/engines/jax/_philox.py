"""Philox4x32-10 in JAX, for streams that are drawn on the device: the words of `_random/_philox.py`, bit for bit.

JAX has integers of 32 bits unless a process asks for more, so a number of 64 bits is a pair (high, low) here, and a
product of two words is put together from halves of 16 bits.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from fewfire._optional import require

jax: Any = require("jax", "jax", "the jax engine")
jnp: Any = require("jax.numpy", "jax", "the jax engine")

Words: TypeAlias = Any
"""A JAX array of uint32."""

Pair: TypeAlias = tuple[Words, Words]
"""The high and the low word of numbers below 2⁶⁴."""

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def pair(numbers: int | list[int]) -> Pair:
    """A number below 2⁶⁴, or several, as arrays of their shape."""
    both = np.array(numbers, dtype=np.uint64)
    return (both >> np.uint64(32)).astype(np.uint32), both.astype(np.uint32)


def product(a: Words, b: Words) -> Pair:
    """a·b of two words."""
    low, high = jnp.uint32(0xFFFF), jnp.uint32(16)
    a0, a1, b0, b1 = a & low, a >> high, b & low, b >> high
    first = a1 * b0 + ((a0 * b0) >> high)
    second = a0 * b1 + (first & low)
    return a1 * b1 + (first >> high) + (second >> high), a * b


def plus(number: Pair, word: Words) -> Pair:
    """A pair and a word."""
    low = number[1] + word
    return number[0] + (low < word).astype(jnp.uint32), low


def words(key: Pair, stream: Pair, start: Pair, count: int) -> Words:
    """`count` words of one stream from word `start` on, of shape (count,); `count` is known when this is compiled."""
    block = start[0] >> 2, (start[0] << 30) | (start[1] >> 2)
    c1, c0 = plus(block, jnp.arange((count + 6) // 4, dtype=jnp.uint32))
    c2, c3 = jnp.broadcast_to(stream[1], c0.shape), jnp.broadcast_to(stream[0], c0.shape)
    k1, k0 = key
    for _ in range(10):
        a, b = product(jnp.uint32(_MULTIPLIERS[0]), c0), product(jnp.uint32(_MULTIPLIERS[1]), c2)
        c0, c1, c2, c3 = b[0] ^ c1 ^ k0, b[1], a[0] ^ c3 ^ k1, a[1]
        k0, k1 = k0 + jnp.uint32(_WEYL[0]), k1 + jnp.uint32(_WEYL[1])
    drawn = jnp.stack([c0, c1, c2, c3], axis=1).reshape(-1)
    return jax.lax.dynamic_slice(drawn, ((start[1] & 3).astype(jnp.int32),), (count,))


def integers(drawn: Words, bound: Words) -> Any:
    """⌊word·bound / 2³²⌋, as int32 of the shape of the words."""
    return product(drawn, bound)[0].astype(jnp.int32)


def permutation(drawn: Words) -> Any:
    """The stable order of words (size,), as int32."""
    return jnp.argsort(drawn, stable=True).astype(jnp.int32)
