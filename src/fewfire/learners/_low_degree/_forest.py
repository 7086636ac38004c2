"""Shallow forests as polynomials: what they smooth well from few rows, the other families do not.

A decision tree of depth d is a polynomial of degree at most d, each leaf a product of at most d factors (1 ± x_i)/2,
and so is a mean of trees. They are grown by scikit-learn; a row is predicted by the trees whose bootstrap sample
missed it.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.learners._low_degree._polynomial import padded_sets, sparse_polynomial
from fewfire.learners._low_degree._sample import Fit

if TYPE_CHECKING:
    from fewfire.learners._low_degree._polynomial import Polynomial
    from fewfire.learners._low_degree._sample import SignSample

TREES = 80
SHARES = (0.33, 0.7)  # shares of the columns that a split looks at


def forest_fits(sample: SignSample, depth: int, seed: int) -> list[Fit]:
    """Forests of trees no deeper than `depth`, one for each of SHARES."""
    from sklearn.ensemble import RandomForestRegressor  # here: few fits need it, and it takes long to import

    fits = []
    for share in SHARES:
        grown = RandomForestRegressor(TREES, max_depth=depth, max_features=share, oob_score=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows that every tree has seen: they get the mean below
            grown.fit(sample.signs, sample.labels, sample_weight=sample.weights)
        held_out = np.asarray(grown.oob_prediction_, dtype=np.float64)
        counted = np.zeros(len(sample), dtype=bool)
        for rows in grown.estimators_samples_:
            counted |= ~np.isin(np.arange(len(sample)), rows)
        held_out[~counted] = sample.mean
        words = f"forest of depth {depth}, {share:.0%} of the columns per split"
        trees = [tree.tree_ for tree in grown.estimators_]
        fits.append(Fit("forest", depth, words, held_out, partial(_mean_of_trees, trees, sample.signs.shape[1])))
    return fits


def _mean_of_trees(trees: list[Any], n: int) -> Polynomial:
    """The mean of the trees, term by term."""
    total: dict[int, float] = {}
    for tree in trees:
        for mask, value in _tree_polynomial(tree, 0).items():
            total[mask] = total.get(mask, 0.0) + value / len(trees)
    constant = total.pop(0, 0.0)
    members = [[bit for bit in range(mask.bit_length()) if mask >> bit & 1] for mask in total]
    return sparse_polynomial(n, constant, padded_sets(members), np.array(list(total.values()), dtype=np.float64))


def _tree_polynomial(tree: Any, node: int) -> dict[int, float]:
    """The coefficients of the subtree below a node, by sets of columns as bit masks; x = −1 goes to the left."""
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
