"""What cannot be learned fast (sparse-activations, Theorems 13 and 14)."""

from __future__ import annotations

import math
from typing import NamedTuple

from fewfire._validate import check_integer, check_number
from fewfire.papers._numbers import log10, power, product


class JuntaClass(NamedTuple):
    """The class H(n, s, 1) with scales W and B that holds every junta of p variables with values ±1."""

    s: int
    W: float
    B: float


def junta_class(p: int) -> JuntaClass:
    """Theorem 13: what a 1-sparse network needs to hold every ±1 function of p variables: 2^p neurons, √p and p − 1.

    The theorem prints B = p; its construction, of bias p − 1, shows a little more.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.junta_class(4)
    JuntaClass(s=16, W=2.0, B=3.0)
    """
    p = check_integer("p", p, 1)
    return JuntaClass(2**p, math.sqrt(p), float(p - 1))


def junta_size(s: int) -> int:
    """Theorem 13: the largest p = ⌊log₂ s⌋ for which s neurons hold every junta of p variables.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> sparse_activations.junta_size(1000)
    9
    """
    return check_integer("s", s, 1).bit_length() - 1


def log10_junta_time(n: int, s: int) -> float:
    """Theorem 13: log10 of n^(log₂ s), below which no learner of the class can run for a small constant.

    It assumes Conjecture 12 (juntas of p variables take time n^Ω(p)), and W ≥ √log₂ s, B ≥ log₂ s.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.log10_junta_time(n=100, s=1024), 3)
    20.0
    """
    check_integer("n", n, 1)
    check_integer("s", s, 1)
    return math.log2(s) * log10(n)


def parity_queries(m: int, tolerance: float) -> float:
    """Theorem 14: learning parities of m variables to error 1/3 takes 2^m τ² statistical queries, τ the tolerance.

    The parity is of an unknown subset of the variables, inputs are uniform, an answer may be off by τ.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.parity_queries(20, tolerance=0.1))
    10486
    """
    check_integer("m", m, 0)
    check_number("tolerance", tolerance, 0.0, 1.0)
    return product(power(2.0, m), tolerance * tolerance)


def parity_queries_explicit(m: int, tolerance: float) -> float:
    """Theorem 14 with its constant: (2^m − 9) τ² queries at least, when every parity must be learned to error 1/3.

    Proof. A query φ(x, y) = φ₀(x) + y φ₁(x), |φ₁| ≤ 1, has mean E φ₀ + φ̂₁(S) for the parity of S. By Parseval fewer
    than 1/τ² sets have |φ̂₁(S)| > τ, so the answer E φ₀ is admissible for all the others: q queries rule out fewer
    than q/τ² parities. A hypothesis of error at most 1/3 has correlation at least 1/3 with the target,
    and by Parseval with at most 9 parities. So 2^m − q/τ² > 9 leaves a parity that is not learned.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.parity_queries_explicit(m=20, tolerance=0.1))
    10486
    """
    check_integer("m", m, 0)
    check_number("tolerance", tolerance, 0.0, 1.0)
    return product(max(0.0, power(2.0, m) - 9), tolerance * tolerance)


def parity_success_explicit(m: int, tolerance: float, queries: int) -> float:
    """The largest probability of learning a uniformly random parity: (q/τ² + 9)/2^m, at most 1.

    For an oracle that answers E φ₀ whenever it may (see `parity_queries_explicit`): until one of the queries rules
    the target in, all targets not ruled out see the same answers and get the same hypothesis.

    Examples
    --------
    >>> from fewfire.papers import sparse_activations
    >>> round(sparse_activations.parity_success_explicit(m=20, tolerance=0.1, queries=1000), 3)
    0.095
    """
    check_integer("m", m, 0)
    check_number("tolerance", tolerance, 0.0, 1.0, open_low=True)
    check_integer("queries", queries, 0)
    return min(1.0, (queries / tolerance**2 + 9) * power(2.0, -m))
