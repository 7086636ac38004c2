"""How fast is the exhaustive parity search, and what bounds it?

All 161,700 sets of 3 among 100 columns, 1000 noisy examples, labels of a hidden parity, on all cores, packing included.
The rival is the better of two good NumPy versions: matrix products (all pairs that complete a first member at once) and
XOR with numpy.bitwise_count on packed columns. Asked: under 0.2 s.

    python benchmarks/exhaustive_search.py
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire import _core
from fewfire._bits import pack_columns
from fewfire._cores import usable_cores
from fewfire.learners.baselines import ExhaustiveParity
from fewfire.learners.baselines._exhaustive_parity import search, search_reference
from fewfire.problems import Parity

if TYPE_CHECKING:
    from collections.abc import Callable

N, K, M, ASKED = 100, 3, 1000, 0.2
SUPPORT = [20, 47, 91]


def bitwise_count(X: np.ndarray, y: np.ndarray) -> tuple[int, ...]:
    """One XOR and one popcount a word and set, vectorised over the last member."""
    columns, labels = pack_columns(X), pack_columns(y[:, None])[0]
    best, support = -1, ()
    for prefix in combinations(range(N - 1), K - 1):
        met = columns[prefix[-1] + 1 :] ^ (labels ^ np.bitwise_xor.reduce(columns[list(prefix)], axis=0))
        strength = np.abs(M - 2 * np.bitwise_count(met).sum(axis=1, dtype=np.int64))
        at = int(strength.argmax())
        if strength[at] > best:
            best, support = int(strength[at]), (*prefix, prefix[-1] + 1 + at)
    return support


def seconds(work: Callable[[], Any], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def main() -> int:
    X, y = Parity(N, K, SUPPORT, noise=0.2).sample(M, seed=0)
    threads = usable_cores()
    found = search(X, y, K, threads)
    assert list(found.best.support) == SUPPORT == list(search_reference(X, y, K).best.support)
    assert list(bitwise_count(X, y)) == SUPPORT
    ours = statistics.median(seconds(lambda: ExhaustiveParity(k=K).fit(X, y), 51))
    kernel = seconds(lambda: search(X, y, K, threads), 51)
    products = statistics.median(seconds(lambda: search_reference(X, y, K), 5))
    counts = statistics.median(seconds(lambda: bitwise_count(X, y), 5))
    ratio = min(products, counts) / statistics.median(kernel)
    print(f"{threads} cores, {_core.isa()}: {found.sets} sets")
    print(f"fit {ours * 1e3:.2f} ms, of which the search {statistics.median(kernel) * 1e3:.2f} ms")
    print(f"NumPy: {products * 1e3:.0f} ms by products, {counts * 1e3:.0f} ms by bitwise_count; ratio {ratio:.0f}")

    # What bounds it: the columns stay in the caches and each 64 bytes of them meet 4 prefixes, so the popcounts do.
    # With long columns nothing else is left; with 16 words per column, reading out the counts shows as well.
    X_long, y_long = Parity(N, K, SUPPORT, noise=0.2).sample(100 * M, seed=0)
    columns, labels = pack_columns(X_long), pack_columns(y_long[:, None])[0]
    members, correlations = np.empty((2, K), dtype=np.int64), np.empty(2, dtype=np.int64)
    work = _core.parity_search(columns, labels, len(X_long), K, threads, members, correlations)
    long = seconds(lambda: _core.parity_search(columns, labels, len(X_long), K, threads, members, correlations), 7)
    # Rates of the machine: the best repeat, not the median.
    rate, peak = found.words / min(kernel) / 1e9, work[1] / min(long) / 1e9
    print(
        f"{rate:.1f} billion popcounts of 64 bits per second, packing included; {peak:.1f} with 100 times the examples"
    )
    print(f"{found.words / found.sets:.1f} words met a set of {-(-M // 64)}; {rate * 2:.1f} GB/s of columns read")
    print(json.dumps({"name": "exhaustive_search", "seconds": round(ours, 6), "asked": ASKED, "ratio": round(ratio, 1),
                      "cores": threads, "isa": _core.isa(), "sets": found.sets, "gigawords_per_second": round(rate, 1),
                      "peak_gigawords_per_second": round(peak, 1)}))  # fmt: skip
    return int(ours >= ASKED)


if __name__ == "__main__":
    sys.exit(main())
