"""Low-degree learning: fewfire against scikit-learn's PolynomialFeatures + Ridge, and where the latter has no memory.

    python benchmarks/low_degree.py [--repeats 5]

Asked, at degree 3 with ridge penalty 1: n = 40, m = 12000 (10701 monomials, the ill-conditioned case) regression 30
times as fast, n = 30, m = 50000 100 times, predictions on the training and on new points equal to 1e-4; estimation of
all coefficients 1000 times as fast; n = 100, m = 100000 (166751 monomials) fitted in under 2 GiB.

Everyone gets all cores. The peer runs once a size, between fewfire's runs, of which the median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from fewfire import Stream, fourier
from fewfire.learners import LowDegreeRegressor

CORES = len(os.sched_getaffinity(0))
DEGREE = 3
RIDGE = {"method": "regression", "alpha": 1.0}
"""As the peer has it; the defaults search for more, see low_degree_accuracy.py."""
ASKED = {(40, 12_000): 30.0, (30, 50_000): 100.0}
ASKED_ESTIMATION = 1000.0
ASKED_AGREEMENT = 1e-4
LARGE = (100, 100_000)
ASKED_GIB = 2.0


def data(n: int, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Uniform signs; labels of degree 3 and above, a tenth of them flipped."""
    X = Stream(seed, "data").sign_rows(samples, n)
    clean = np.sign(X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3] + X[:, 4] * X[:, 5] + 0.5 * X[:, 6])
    return X, clean * np.where(Stream(seed, "noise").uniform(samples) < 0.1, -1.0, 1.0)


def seconds(work: object, repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        began = perf_counter()
        work()  # type: ignore[operator]
        times.append(perf_counter() - began)
    return times


def compare(n: int, samples: int, repeats: int) -> dict[str, float]:
    """Times and agreement at one size; leaves when a result is wrong."""
    (X, y), (new, _) = data(n, samples), data(n, 5000, seed=1)
    table = X.astype(np.float64)
    mine, estimator = LowDegreeRegressor(DEGREE, **RIDGE), LowDegreeRegressor(DEGREE, method="estimation")
    peer = make_pipeline(PolynomialFeatures(DEGREE, interaction_only=True, include_bias=False), Ridge())
    mine.fit(X, y)
    estimator.fit(X, y)
    check_estimates(estimator.coefficients_, X, y)
    times, estimation = seconds(lambda: mine.fit(X, y), repeats), seconds(lambda: estimator.fit(X, y), repeats)
    peer_seconds = seconds(lambda: peer.fit(table, y), 1)[0]
    times += seconds(lambda: mine.fit(X, y), repeats)
    estimation += seconds(lambda: estimator.fit(X, y), repeats)
    apart = max(float(np.abs(mine.predict(rows) - peer.predict(rows.astype(float))).max()) for rows in (X[:5000], new))
    ours, estimated = statistics.median(times), statistics.median(estimation)
    return {
        "seconds": round(ours, 4), "peer_seconds": round(peer_seconds, 2), "ratio": round(peer_seconds / ours, 1),
        "asked": ASKED[n, samples], "largest_difference": apart, "solver": mine.solver_, "steps": mine.n_iter_,
        "estimation_seconds": round(estimated, 5), "estimation_ratio": round(peer_seconds / estimated),
    }  # fmt: skip


def check_estimates(values: np.ndarray, X: np.ndarray, y: np.ndarray) -> None:
    """A few coefficients against the definition."""
    for index in range(0, len(values), len(values) // 50):
        members = list(fourier.monomial_members(X.shape[1], index))
        if values[index] != (y * X[:, members].prod(axis=1)).mean():
            sys.exit(f"the estimate of {members} is wrong")


def peak_gib() -> float:
    """Most memory this process has used. Linux's VmHWM starts anew with the process; ru_maxrss is inherited."""
    status = Path("/proc/self/status")
    if status.exists():
        return (
            next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 2**20
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def large() -> None:
    """Fit the large case in this process; print seconds, peak memory, and how far the gradient is from zero."""
    X, y = data(*LARGE)
    model = LowDegreeRegressor(DEGREE, **RIDGE)
    began = perf_counter()
    model.fit(X, y)
    taken = perf_counter() - began
    peak = peak_gib()
    # At the minimum the residual's sum with every monomial is alpha times its coefficient: summed by another kernel.
    residual = y - model.predict(X)
    gradient = len(y) * fourier.estimate(X, residual, DEGREE).values - model.alpha * model.coefficients_
    start = len(y) * fourier.estimate(X, y - y.mean(), DEGREE).values
    ratio = float(np.linalg.norm(gradient[1:]) / np.linalg.norm(start[1:]))
    print(json.dumps({"seconds": round(taken, 2), "peak_gib": round(peak, 3), "steps": model.n_iter_,
                      "monomials": len(model.coefficients_), "relative_gradient": ratio}))  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="runs of fewfire before and after the peer")
    parser.add_argument("--large", action="store_true", help="only the large case, in this process")
    arguments = parser.parse_args()
    if arguments.large:
        large()
        return 0
    print(f"{CORES} threads", flush=True)
    figures, missed = {}, []
    for (n, samples), asked in ASKED.items():
        figure = compare(n, samples, arguments.repeats)
        print(f"n={n} m={samples}: regression {figure['seconds']} s ({figure['steps']} steps of {figure['solver']}), "
              f"scikit-learn {figure['peer_seconds']} s: {figure['ratio']}× (asked {asked:.0f}×), predictions within "
              f"{figure['largest_difference']:.1e}; estimation {figure['estimation_seconds']} s: "
              f"{figure['estimation_ratio']}× (asked {ASKED_ESTIMATION:.0f}×)", flush=True)  # fmt: skip
        missed += [f"n={n} regression"] * (figure["ratio"] < asked)
        missed += [f"n={n} agreement"] * (figure["largest_difference"] > ASKED_AGREEMENT)
        missed += [f"n={n} estimation"] * (figure["estimation_ratio"] < ASKED_ESTIMATION)
        figures[f"{n}x{samples}"] = figure
    done = subprocess.run([sys.executable, __file__, "--large"], capture_output=True, text=True, check=True)
    big = json.loads(done.stdout)
    print(f"n={LARGE[0]} m={LARGE[1]}: {big['monomials']} monomials in {big['seconds']} s and {big['peak_gib']} GiB (asked "
          f"{ASKED_GIB} GiB), gradient down to {big['relative_gradient']:.1e} of its start")  # fmt: skip
    missed += ["memory"] * (big["peak_gib"] >= ASKED_GIB) + ["large fit"] * (big["relative_gradient"] > 1e-5)
    ratio = min(figure["ratio"] / figure["asked"] for figure in figures.values())
    print(json.dumps({"name": "low_degree", "ratio": round(ratio, 2), "threads": CORES, "figures": figures, "large": big, "missed": missed}))  # fmt: skip
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
