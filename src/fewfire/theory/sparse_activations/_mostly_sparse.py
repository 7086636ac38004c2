"""Networks that are k-sparse on most inputs (sparse-activations, Remark 11), with every constant.

The remark extends Theorem 8 to networks of which more than k neurons fire with probability at most 1/poly(n, s), by a
third term of the average sensitivity, and names no polynomial. Here it is (s/k)², whatever n: a probability of (k/s)²
costs half as much again as none. Conventions of AS as in `_sensitivity`.
"""

from __future__ import annotations

import math

from fewfire._validate import check_integer, check_number
from fewfire.theory._numbers import check_accuracy, power, product
from fewfire.theory.sparse_activations._sensitivity import average_sensitivity_sharp


def average_sensitivity_mostly_sparse(s: int, k: int, W: float, p: float) -> float:
    """Remark 11: AS(h) ≤ (4 k² + 2 p s²) W² where more than k of the s neurons fire with probability at most p.

    Proof. Let V be the inputs on which more than k fire. Pairs x, y = x^⊕i of which neither is in V give at most
    4 k² W², as in `average_sensitivity_sharp`. For x in V, ¼(h(x) − h(y))² ≤ (Σ_j |u_j w_ji|)² ≤ s Σ_j (u_j w_ji)²,
    which over all i is at most s² W²: p s² W² in the mean, and as much again for y in V.

    Examples
    --------
    >>> from fewfire.theory import sparse_activations
    >>> sparse_activations.average_sensitivity_mostly_sparse(s=100, k=3, W=1.0, p=0.001)
    56.0
    """
    s = check_integer("s", s, 1)
    check_integer("k", k, 1, s, "no more neurons can fire than there are")
    check_number("p", p, 0.0, 1.0)
    return average_sensitivity_sharp(k, W) + product(2.0, p, power(s, 2), power(W, 2))


def degree_mostly_sparse(s: int, k: int, W: float, p: float, epsilon: float) -> float:
    """The smallest d with (4 k² + 2 p s²) W²/(d + 1) ≤ epsilon, so a tail of at most epsilon; see `degree_sharp`.

    Examples
    --------
    >>> from fewfire.theory import sparse_activations
    >>> sparse_activations.degree_mostly_sparse(s=100, k=3, W=1.0, p=0.001, epsilon=1.0)
    55.0
    """
    check_accuracy(epsilon)
    value = average_sensitivity_mostly_sparse(s, k, W, p) / epsilon
    return float(max(0, math.ceil(value) - 1)) if math.isfinite(value) else value


def exceedance_allowed(s: int, k: int) -> float:
    """The 1/poly(n, s) of Remark 11: at Pr[more than k fire] ≤ (k/s)² the bound on AS is at most 1.5 times 4 k² W².

    Examples
    --------
    >>> from fewfire.theory import sparse_activations
    >>> 0 < sparse_activations.exceedance_allowed(s=1000, k=2) < 1
    True
    """
    s = check_integer("s", s, 1)
    return (check_integer("k", k, 1, s, "no more neurons can fire than there are") / s) ** 2
