"""Philox4x32-10 in NumPy: the reference implementation of csrc/kernels/philox.cpp.

Salmon, Moraes, Dror, Shaw: *Parallel random numbers: as easy as 1, 2, 3* (SC 2011). Word w of stream
(key, id) is word w mod 4 of the block with counter (b mod 2³², b div 2³², id mod 2³², id div 2³²), b = w div 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox_block(counter: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint32]:
    """Ten rounds on counters (blocks, 4) of 32-bit words in uint64, and a key of two such words: shape (blocks, 4)."""
    c0, c1, c2, c3 = (counter[:, i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    for _ in range(10):
        a, b = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (b >> _HALF) ^ c1 ^ np.uint64(k0), b & _LOW, (a >> _HALF) ^ c3 ^ np.uint64(k1), a & _LOW
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


def philox_words(key: int, stream: int, first_word: int, count: int) -> NDArray[np.uint32]:
    """Words first_word … first_word + count − 1 of a stream."""
    first_block, skip = divmod(first_word, 4)
    blocks = np.arange((skip + count + 3) // 4, dtype=np.uint64) + np.uint64(first_block)
    counter = np.empty((len(blocks), 4), dtype=np.uint64)
    counter[:, 0], counter[:, 1] = blocks & _LOW, blocks >> _HALF
    counter[:, 2], counter[:, 3] = stream & 0xFFFFFFFF, stream >> 32
    return philox_block(counter, (key & 0xFFFFFFFF, key >> 32)).reshape(-1)[skip : skip + count]
