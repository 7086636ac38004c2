"""Are the low-degree estimators strong by default? Fourteen targets, five sample sizes, five rivals from scikit-learn.

    python benchmarks/low_degree_accuracy.py [--draws 20] [--first 0] [--jobs 2] [--only TEXT]

Every learner sees the same rows. fewfire gets its defaults and nothing else, not even the degree. The rivals are given
the target's degree (cut to what fits the time) and choose the rest: ridge regression on all monomials with the penalty
of least leave-one-out error, lasso on all monomials with the penalty of least five-fold error, and forests of 100 trees
that look at √n or at all columns in a split, whichever has the better out-of-bag score. Where labels are classes, there
are logistic regression on the columns with the penalty of least five-fold log loss, and 100 extra trees. Each learner
has one thread.

Targets are functions of uniform bits, and bits of real tables from scikit-learn: digits, a pixel being dark or not, and
breast cancer, cut at the medians. Scores are points on fresh rows, 4000 without noise or the rest of a real table:
accuracy; balanced accuracy for the rare AND, where every learner balances the classes; 100·R² for the two targets that
are numbers. The difference to the rival of best mean is paired by draw, with Student's 95% interval. Asked: at most 3 of
the 70 cells with a mean difference below −1 point.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LassoCV, LogisticRegression, RidgeCV
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import PolynomialFeatures
from threadpoolctl import threadpool_limits

from fewfire import Stream
from fewfire.learners import LowDegreeClassifier, LowDegreeRegressor
from fewfire.networks import construct
from fewfire.problems import Indexing, Junta

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = 4000
ALLOWED = 3
MARGIN = -1.0


@dataclass(frozen=True)
class Target:
    """What is to be learned: `values(X, draw)` without noise; `noise` is a share of flipped labels or a deviation."""

    name: str
    n: int
    degree: int
    sizes: tuple[int, ...]
    values: Callable[[np.ndarray, int], np.ndarray]
    noise: float = 0.0
    numbers: bool = False
    rare: bool = False

    def draw(self, samples: int, draw: int) -> tuple[np.ndarray, ...]:
        """Training rows and labels, test rows and labels without noise."""
        stream = Stream(draw, f"{self.name} {samples}")
        X, tests = stream.child("train").sign_rows(samples, self.n), stream.child("test").sign_rows(TESTS, self.n)
        y, truth = self.values(X, draw).astype(np.float64), self.values(tests, draw).astype(np.float64)
        if self.numbers:
            y = y + self.noise * stream.child("noise").normal(samples)
        else:
            y = np.where(stream.child("noise").uniform(samples) < self.noise, -y, y)
        return X, y, tests, truth


def parity(k: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """The product of the first k columns."""
    return lambda X, draw: X[:, :k].prod(axis=1)


def junta(k: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """A random function of the first k columns that depends on all of them."""

    def values(X: np.ndarray, draw: int) -> np.ndarray:
        for attempt in range(1000):
            table = Stream(draw, f"table {attempt}").signs(2**k)
            problem = Junta(X.shape[1], range(k), table)
            if len(problem.depends_on) == k:
                return problem.target(X)
        raise AssertionError

    return values


def indexing(b: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """The indexing function on the first b + 2ᵇ columns."""
    return lambda X, draw: Indexing(b).target(X[:, : b + 2**b])


def member(s: int, k: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """A random network of the class H(n, s, k), scaled to variance 1."""

    def values(X: np.ndarray, draw: int) -> np.ndarray:
        net = construct.random_member(X.shape[1], s, k, draw)
        reference = net(Stream(draw, "scale").sign_rows(4000, X.shape[1]))
        return (net(X) - reference.mean()) / reference.std()

    return values


def member_sign(s: int, k: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """Whether such a network is above its mean."""
    values = member(s, k)
    return lambda X, draw: np.where(values(X, draw) > 0.0, 1, -1)


def sparse_polynomial(count: int, degree: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """`count` random monomials of 1 … degree columns with normal coefficients, scaled to variance 1."""

    def values(X: np.ndarray, draw: int) -> np.ndarray:
        random = np.random.default_rng([draw, count])
        coefficients = random.normal(size=count)
        total = np.zeros(len(X))
        for place, coefficient in enumerate(coefficients / np.linalg.norm(coefficients)):
            total += coefficient * X[:, random.choice(X.shape[1], 1 + place % degree, replace=False)].prod(axis=1)
        return total

    return values


def conjunction(k: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """+1 where the first k columns are all −1: one row in 2ᵏ."""
    return lambda X, draw: np.where((X[:, :k] < 0).all(axis=1), 1, -1)


def halfspace(X: np.ndarray, draw: int) -> np.ndarray:
    """The side of a half-space with normal weights."""
    return np.where(X @ Stream(draw, "half-space").normal(X.shape[1]) > 0.0, 1, -1)


def majority(k: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """What most of the first k columns are, k odd."""
    return lambda X, draw: np.where(X[:, :k].sum(axis=1, dtype=np.int64) > 0, 1, -1)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pixels above half of the range; whether the digit is even."""
    data = load_digits()
    return np.where(data.data > 8, -1, 1).astype(np.int8), np.where(data.target % 2 == 0, 1, -1)


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """Measurements above their medians; whether the tumour is benign."""
    data = load_breast_cancer()
    return np.where(data.data > np.median(data.data, axis=0), -1, 1).astype(np.int8), 2 * data.target - 1


@dataclass(frozen=True)
class RealBits:
    """A table of signs and its labels: a draw is a random part of the rows, and the rest is for the test."""

    name: str
    table: Callable[[], tuple[np.ndarray, np.ndarray]]
    sizes: tuple[int, ...]
    degree: int = 2
    numbers: bool = False
    rare: bool = False

    def draw(self, samples: int, draw: int) -> tuple[np.ndarray, ...]:
        """Training rows and labels, test rows and labels."""
        X, y = self.table()
        order = np.random.default_rng([draw, samples]).permutation(len(y))
        train, test = order[:samples], order[samples:]
        return X[train], y[train].astype(np.float64), X[test], y[test].astype(np.float64)


TARGETS: tuple[Target | RealBits, ...] = (
    Target("parity of 3 of 30, 10% noise", 30, 3, (150, 225, 300, 500, 800), parity(3), 0.1),
    Target("parity of 2 of 50, 25% noise", 50, 2, (80, 150, 250, 500, 1000), parity(2), 0.25),
    Target("junta of 3 of 20, 10% noise", 20, 3, (50, 100, 200, 400, 800), junta(3), 0.1),
    Target("junta of 5 of 14", 14, 4, (75, 150, 300, 500, 1000), junta(5)),
    Target("indexing by 2 bits, 20 columns, 10% noise", 20, 3, (75, 150, 300, 500, 1000), indexing(2), 0.1),
    Target("indexing by 3 bits", 11, 4, (100, 200, 400, 700, 1000), indexing(3)),
    Target("member of H(16, 32, 2)", 16, 3, (75, 150, 300, 600, 1000), member(32, 2), 0.2, numbers=True),
    Target("sign of a member of H(12, 24, 4)", 12, 3, (75, 150, 300, 600, 1000), member_sign(24, 4), 0.05),
    Target("8 monomials of degree 1 to 3, 20 columns", 20, 3, (75, 150, 300, 500, 1000), sparse_polynomial(8, 3), 0.5, numbers=True),
    Target("AND of 4 of 20, 2% noise", 20, 3, (100, 200, 400, 700, 1000), conjunction(4), 0.02, rare=True),
    Target("half-space, 25 columns", 25, 1, (100, 300, 700, 1500, 3000), halfspace),
    Target("majority of 21 columns", 21, 1, (75, 150, 300, 700, 1500), majority(21)),
    RealBits("bits of digits", digits, (100, 200, 400, 700, 1200)),
    RealBits("bits of breast cancer", breast_cancer, (50, 100, 150, 250, 400)),
)  # fmt: skip


def our_scores(
    target: Target | RealBits, X: np.ndarray, y: np.ndarray, tests: np.ndarray, truth: np.ndarray
) -> dict[str, float]:
    """The defaults of fewfire."""
    began = perf_counter()
    if target.numbers:
        model = LowDegreeRegressor(random_state=0, n_jobs=1)
    else:
        model = LowDegreeClassifier(random_state=0, n_jobs=1, class_weight="balanced" if target.rare else None)
    predicted = model.fit(X, y).predict(tests)
    return {"fewfire": points(target, predicted, truth), "fewfire seconds": perf_counter() - began}


def rival_scores(
    target: Target | RealBits, X: np.ndarray, y: np.ndarray, tests: np.ndarray, truth: np.ndarray
) -> dict[str, float]:
    """The rivals, each with its seconds."""
    scores: dict[str, float] = {}
    weights = np.where(y > 0, 0.5 / max(1e-9, (y > 0).mean()), 0.5 / (y < 0).mean()) if target.rare else None
    features = PolynomialFeatures(target.degree, interaction_only=True, include_bias=False)
    table, test_table = features.fit_transform(X.astype(float)), features.transform(tests.astype(float))
    linear = {
        "ridge": RidgeCV(alphas=np.geomspace(0.1, 1e4, 16)),
        "lasso": LassoCV(alphas=40, eps=0.01, cv=5, tol=1e-3, random_state=0),
    }
    for name, model in linear.items():
        began = perf_counter()
        values = model.fit(table, y, sample_weight=weights).predict(test_table)
        scores[name] = points(target, values if target.numbers else np.where(values > 0.0, 1, -1), truth)
        scores[f"{name} seconds"] = perf_counter() - began
    began = perf_counter()
    forest = RandomForestRegressor if target.numbers else RandomForestClassifier
    options = {"class_weight": "balanced"} if target.rare else {}
    forests = [
        forest(100, max_features=share, oob_score=True, random_state=0, **options).fit(X, y) for share in ("sqrt", None)
    ]
    best = max(forests, key=lambda fitted: fitted.oob_score_)
    scores["forest"] = points(target, best.predict(tests), truth)
    scores["forest seconds"] = perf_counter() - began
    if target.numbers:
        return scores
    classifiers = {
        "logistic": GridSearchCV(
            LogisticRegression(max_iter=1000, **options), {"C": np.geomspace(1e-3, 1e3, 10)}, scoring="neg_log_loss"
        ),
        "extra trees": ExtraTreesClassifier(100, random_state=0, **options),
    }
    for name, model in classifiers.items():
        began = perf_counter()
        scores[name] = points(target, model.fit(X, y).predict(tests), truth)
        scores[f"{name} seconds"] = perf_counter() - began
    return scores


def points(target: Target | RealBits, predicted: np.ndarray, truth: np.ndarray) -> float:
    """100·R², balanced accuracy or accuracy."""
    if target.numbers:
        return 100.0 * (1.0 - float(np.mean((predicted - truth) ** 2) / np.var(truth)))
    if target.rare:
        return 100.0 * float(balanced_accuracy_score(truth, predicted))
    return 100.0 * float(np.mean(predicted == truth))


def measure(task: tuple[int, int, int]) -> dict[str, float]:
    """All learners on one draw of one cell."""
    place, samples, draw = task
    target = TARGETS[place]
    data = target.draw(samples, draw)
    return our_scores(target, *data) | rival_scores(target, *data)


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and half the width of Student's 95% interval."""
    half = float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()), half


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw: another one gives other rows")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default="", help="measure targets with this in their names alone")
    options = parser.parse_args()
    began = perf_counter()
    places = [place for place, target in enumerate(TARGETS) if options.only in target.name]
    cells = [(place, samples) for place in places for samples in TARGETS[place].sizes]
    draws = range(options.first, options.first + options.draws)
    tasks = [(place, samples, draw) for place, samples in cells for draw in draws]
    below, surely, rows = [], [], []
    with ProcessPoolExecutor(options.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        results = pool.map(measure, tasks)
        for place, samples in cells:
            found = [next(results) for _ in range(options.draws)]
            row = {name: np.array([scores[name] for scores in found]) for name in found[0]}
            rivals = [name for name in row if name != "fewfire" and not name.endswith("seconds")]
            rival = max(rivals, key=lambda name: row[name].mean())
            difference, half = interval(row["fewfire"] - row[rival])
            name = f"{TARGETS[place].name}, m = {samples}"
            below += [name] * (difference < MARGIN)
            surely += [name] * (difference + half < MARGIN)
            scores = "  ".join(f"{who} {row[who].mean():5.1f}" for who in ("fewfire", *rivals))
            print(f"{name:56} {scores}  to {rival}: {difference:+5.1f} ± {half:.1f}", flush=True)
            figures = {who: round(float(row[who].mean()), 2) for who in row}
            rows.append({"cell": name, "difference": round(difference, 2), "half": round(half, 2)} | figures)
    print(f"more than {-MARGIN:g} point below the best rival in {len(below)} of {len(cells)} cells (asked: at most "
          f"{ALLOWED}), in {len(surely)} with the whole interval: {'; '.join(below) or 'none'}")  # fmt: skip
    print(json.dumps({"name": "low_degree_accuracy", "below": below, "surely_below": surely, "cells": rows,
                      "seconds": round(perf_counter() - began, 1)}))  # fmt: skip
    return int(len(below) > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
