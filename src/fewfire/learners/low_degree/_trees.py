"""Shallow forests as polynomials: what they smooth well from few rows, the other families do not.

A decision tree of depth d is a polynomial of degree at most d, each leaf a product of at most d factors (1 ± x_i)/2,
and so is a mean of trees. They are grown by scikit-learn; a row is judged by the trees whose bootstrap sample missed
it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.learners.low_degree._polynomial import Polynomial, sparse_polynomial

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.learners.low_degree._sample import SignSample

TREES = 80
SHARES = (0.33, 0.7)
"""Shares of the columns that a split looks at."""


@dataclass(frozen=True, eq=False)
class Forest:
    """A forest of regression trees on signs, and its predictions of rows by trees that did not see them."""

    n: int
    held_out: Float64Array
    trees: list[Any]

    def polynomial(self) -> Polynomial:
        """The mean of the trees, term by term."""
        total: dict[int, float] = {}
        for tree in self.trees:
            for mask, value in _tree_polynomial(tree, 0).items():
                total[mask] = total.get(mask, 0.0) + value / len(self.trees)
        constant = total.pop(0, 0.0)
        members = [[bit for bit in range(mask.bit_length()) if mask >> bit & 1] for mask in total]
        width = max(map(len, members), default=0)
        sets = np.array([[*row, *[-1] * (width - len(row))] for row in members], dtype=np.int64)
        values = np.array(list(total.values()), dtype=np.float64)
        return sparse_polynomial(self.n, constant, sets.reshape(len(members), width), values)


def grow_forest(sample: SignSample, depth: int, share: float, seed: int) -> Forest:
    """A forest of TREES trees of at most a depth; `seed` fixes it."""
    from sklearn.ensemble import RandomForestRegressor  # here: few fits need it, and it takes long to import

    grown = RandomForestRegressor(TREES, max_depth=depth, max_features=share, oob_score=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that every tree has seen: they get the mean below
        grown.fit(sample.signs, sample.labels, sample_weight=sample.weights)
    held_out = np.asarray(grown.oob_prediction_, dtype=np.float64)
    counted = np.zeros(len(sample), dtype=bool)
    for rows in grown.estimators_samples_:
        missed = np.ones(len(sample), dtype=bool)
        missed[rows] = False
        counted |= missed
    held_out[~counted] = sample.mean
    return Forest(sample.signs.shape[1], held_out, [tree.tree_ for tree in grown.estimators_])


def _tree_polynomial(tree: Any, node: int) -> dict[int, float]:
    """The coefficients of the subtree below a node, by sets of columns as bit masks.

    With x = −1 to the left, the value is (left + right)/2 + x·(right − left)/2.
    """
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == right:
        return {0: float(tree.value[node].item())}
    bit = 1 << int(tree.feature[node])
    total: dict[int, float] = {}
    for child, sign in ((left, -0.5), (right, 0.5)):
        for mask, value in _tree_polynomial(tree, child).items():
            total[mask] = total.get(mask, 0.0) + 0.5 * value
            total[mask | bit] = total.get(mask | bit, 0.0) + sign * value
    return total
