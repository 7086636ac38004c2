"""Walsh–Hadamard transform of 2^22 float64 values: fewfire against NumPy, packages from PyPI, and memory.

    python benchmarks/walsh.py [--n 22] [--threads 2] [--repeats 15]

Asked: at least 15 times the NumPy butterfly on two cores. The butterfly is the fastest of three ways to write it with
whole-array operations and preallocated buffers (`ratio`; `ratio_textbook` leaves out the third). `fht-cpu` and
`pyfwht` join in when they are installed. All contenders run in turn on the same values, in place; medians are
compared, each side in its fastest way. A copy with as many threads reads and writes the array once: `copies` says how
many such passes over memory the transform is worth. Where other work keeps the cores busy, one thread beats two.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from time import perf_counter

import numpy as np

from fewfire import Stream, fourier

ASKED = 15.0
Array = np.ndarray
Contender = Callable[[Array], Array]


def butterfly_in_place(values: Array, buffer: Array) -> Array:
    for level in range(len(values).bit_length() - 1):
        pairs = values.reshape(-1, 2, 2**level)
        difference = buffer[: len(values) // 2].reshape(-1, 2**level)
        np.subtract(pairs[:, 0], pairs[:, 1], out=difference)
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = difference
    return values


def butterfly_two_buffers(values: Array, buffer: Array) -> Array:
    for level in range(len(values).bit_length() - 1):
        pairs, to = values.reshape(-1, 2, 2**level), buffer.reshape(-1, 2, 2**level)
        np.add(pairs[:, 0], pairs[:, 1], out=to[:, 0])
        np.subtract(pairs[:, 0], pairs[:, 1], out=to[:, 1])
        values, buffer = buffer, values
    return values


def butterfly_constant_geometry(values: Array, buffer: Array) -> Array:
    """Neighbours to the two halves, n times: every pass has the same strides."""
    half = len(values) // 2
    for _ in range(len(values).bit_length() - 1):
        np.add(values[0::2], values[1::2], out=buffer[:half])
        np.subtract(values[0::2], values[1::2], out=buffer[half:])
        values, buffer = buffer, values
    return values


def peers(threads: int) -> dict[str, Contender]:
    """Transforms of other packages, those installed."""
    found: dict[str, Contender] = {}
    try:
        fht = importlib.import_module("fht_cpu").fht
        found["fht-cpu"] = lambda values: (fht(values), values)[1]
    except ImportError:
        print("fht-cpu is not installed (pip install fht-cpu)")
    try:
        pyfwht = importlib.import_module("pyfwht")
        backend = pyfwht.Backend.OPENMP if threads > 1 else pyfwht.Backend.CPU
        found["pyfwht"] = lambda values: (pyfwht.transform(values, backend=backend), values)[1]
    except ImportError:
        print("pyfwht is not installed (pip install pyfwht)")
    return found


def copy_on_threads(source: Array, to: Array, pool: ThreadPoolExecutor, threads: int) -> None:
    cuts = [len(source) * part // threads for part in range(threads + 1)]
    parts = [slice(low, high) for low, high in pairwise(cuts)]
    list(pool.map(lambda part: np.copyto(to[part], source[part]), parts))


def measure(n: int, threads: int, repeats: int) -> dict[str, float]:
    """Median seconds of each contender; every result is checked against fewfire's first."""
    values = Stream(0, "benchmark").normal(2**n)
    work, buffer = np.empty_like(values), np.zeros_like(values)
    contenders: dict[str, Contender] = {
        "fewfire": lambda array: fourier.transform(array, inplace=True, normalise=False, threads=threads),
        "fewfire, 1 thread": lambda array: fourier.transform(array, inplace=True, normalise=False, threads=1),
        "fewfire, out of place": lambda array: fourier.transform(array, normalise=False, threads=threads),
        "numpy, in place": lambda array: butterfly_in_place(array, buffer),
        "numpy, two buffers": lambda array: butterfly_two_buffers(array, buffer),
        "numpy, constant geometry": lambda array: butterfly_constant_geometry(array, buffer),
        **peers(threads),
    }
    expected = butterfly_two_buffers(values.copy(), buffer).copy()
    for name, contender in contenders.items():
        np.copyto(work, values)
        error = np.abs(contender(work) - expected).max()
        if error > 1e-9 * np.abs(expected).max():
            sys.exit(f"{name} is wrong: off by {error}")
        if name.startswith("fewfire") and error != 0:
            sys.exit(f"{name} differs from the butterfly in its last bits")
    seconds: dict[str, list[float]] = {name: [] for name in [*contenders, "copy"]}
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            for name, contender in contenders.items():
                np.copyto(work, values)
                began = perf_counter()
                contender(work)
                seconds[name].append(perf_counter() - began)
            began = perf_counter()
            copy_on_threads(values, work, pool, threads)
            seconds["copy"].append(perf_counter() - began)
    return {name: statistics.median(times) for name, times in seconds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=22)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    n, threads = arguments.n, arguments.threads
    seconds = measure(n, threads, arguments.repeats)
    ours, copy = min(seconds["fewfire"], seconds["fewfire, 1 thread"]), seconds["copy"]
    for name, time in sorted(seconds.items(), key=lambda item: item[1]):
        print(f"{name:26s} {1e3 * time:9.2f} ms {time / ours:8.2f} x fewfire {time / copy:7.2f} copies")
    numpy_best = min(time for name, time in seconds.items() if name.startswith("numpy"))
    rivals = {name: time for name, time in seconds.items() if name in ("fht-cpu", "pyfwht")}
    best_peer = min(rivals, key=rivals.__getitem__) if rivals else None
    ratio = numpy_best / ours
    result = {
        "name": "walsh",
        "ratio": round(ratio, 2),
        "asked": ASKED,
        "ratio_textbook": round(min(seconds["numpy, in place"], seconds["numpy, two buffers"]) / ours, 2),
        "n": n,
        "threads": threads,
        "milliseconds": {name: round(1e3 * time, 3) for name, time in seconds.items()},
        "copy_gib_per_s": round(2 * 8 * 2**n / copy / 2**30, 2),
        "copies": round(ours / copy, 2),
        "peer": best_peer,
        "peer_ratio": round(rivals[best_peer] / ours, 2) if best_peer else None,
    }
    print(json.dumps(result))
    return 0 if ratio >= ASKED else 1


if __name__ == "__main__":
    sys.exit(main())
