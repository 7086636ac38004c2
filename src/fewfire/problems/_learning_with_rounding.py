"""Learning with rounding (sparse-activations, Definition 15): f_w(y) = ⌊(p/q)·(⟨w, y⟩ mod q)⌋.

Printed is f_w(y) = (⟨w, y⟩ mod q) mod p. Where p divides q that is ⟨w, y⟩ mod p, linear and learned by elimination:
nothing is rounded. `rounding="remainder"` gives the printed function, "floor" the one whose hardness is assumed
(Banerjee, Peikert and Rosen 2012).

The integers y ∈ Z_q^m are given as ±1 binary digits. Integer i is columns i·D … i·D + D − 1 of X with
D = ⌈log₂ q⌉, least significant digit first, −1 standing for 0. When q is no power of two some patterns
spell no member of Z_q: they are never drawn, and refused when given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._types import IdArray, SignArray
from fewfire._validate import check_choice, check_integer, check_number, check_signs
from fewfire.problems._base import (
    DescribedProblem,
    Given,
    assign,
    check_members,
    check_window,
    happens,
    register_problem,
)

Rounding: TypeAlias = Literal["floor", "remainder"]
"""⌊(p/q)·⟩, or mod p as printed."""

MAX_MODULUS = 2**31
"""Products of two members of Z_q fit in int64."""


@register_problem
@dataclass(frozen=True)
class LearningWithRounding(DescribedProblem):
    """The rounded inner product of m uniform members of Z_q with a secret.

    Parameters
    ----------
    m : int
        Number of integers.
    p, q : int, 2 ≤ p ≤ q ≤ 2**31
        Labels are in Z_p, integers in Z_q.
    secret : sequence of m members of Z_q, optional
        Kept as a tuple; drawn uniformly from a stream fixed by (m, p, q) unless given.
    noise : float in [0, 1]
        Probability that a label is replaced by a uniform member of Z_p.
    rounding : "floor" or "remainder"
        How a member of Z_q becomes one of Z_p: ⌊(p/q)·⟩, or mod p as printed, which is linear where p divides q.

    Examples
    --------
    >>> import fewfire as ff
    >>> problem = ff.problems.LearningWithRounding(m=3, p=2, q=4, secret=[1, 0, 3])
    >>> X, y = problem.sample(5, seed=0)
    >>> X.shape, y.shape
    ((5, 6), (5,))
    """

    name: ClassVar = "learning_with_rounding"
    m: int
    p: int
    q: int
    secret: Given = None
    noise: float = 0.0
    rounding: Rounding = "floor"

    def __post_init__(self) -> None:
        m = check_integer("m", self.m, 1)
        q = check_integer("q", self.q, 2, MAX_MODULUS)
        p = check_integer("p", self.p, 2, q, f"labels are members of Z_q rounded; choose p between 2 and q = {q}")
        noise = check_number("noise", self.noise, 0.0, 1.0, remedy="it is the probability of a replaced label")
        if self.secret is None:
            stream = Stream.of_run(f"learning with rounding m={m} p={p} q={q}", "secret")
            secret = tuple(uniform_integers(stream, q, m).tolist())
        else:
            members = check_members("secret", self.secret)
            secret = tuple(check_integer(f"secret[{i}]", w, 0, q - 1) for i, w in enumerate(members))
            if len(secret) != m:
                raise invalid("secret", f"must hold m = {m} integers", len(secret), "leave it out to draw one")
        rounding = check_choice("rounding", self.rounding, get_args(Rounding))
        assign(self, m=m, p=p, q=q, secret=secret, noise=noise, rounding=rounding)

    @property
    def digits(self) -> int:
        """Binary digits per integer, ⌈log₂ q⌉."""
        return int(self.q - 1).bit_length()

    @property
    def inputs(self) -> int:
        """The number of columns of X: m·⌈log₂ q⌉."""
        return int(self.m * self.digits)

    @property
    def bayes_error(self) -> float:
        """The share of wrong labels of the best predictor: a replaced label is right once in p."""
        return self.noise * (1.0 - 1.0 / self.p)

    def encode(self, Y: ArrayLike) -> SignArray:
        """The ±1 digits, int8 of shape (rows, inputs), of integers in [0, q), of shape (rows, m)."""
        integers = np.asarray(Y)
        if integers.ndim != 2 or integers.shape[1] != self.m or not len(integers):
            raise invalid("Y", f"must be a non-empty table of shape (rows, {self.m})", f"shape {integers.shape}")
        if integers.dtype.kind not in "iu":
            raise invalid("Y", "must hold integers", f"dtype {integers.dtype}", "use numpy.asarray(Y, dtype='int64')")
        outside = integers[(integers < 0) | (integers >= self.q)]
        if outside.size:
            raise invalid("Y", f"must hold members of Z_q, q = {self.q}", int(outside[0]), "reduce it modulo q")
        bits = (integers.astype(np.int64)[:, :, None] >> np.arange(self.digits)) & 1
        return np.asarray(2 * bits - 1, dtype=np.int8).reshape(len(integers), self.inputs)

    def decode(self, X: ArrayLike) -> IdArray:
        """The integers, int64 of shape (rows, m), that ±1 digits of shape (rows, inputs) spell: `encode`'s inverse."""
        signs = check_signs("X", X, self.inputs).reshape(-1, self.m, self.digits)
        integers = (signs > 0) @ (np.int64(1) << np.arange(self.digits, dtype=np.int64))
        if (integers >= self.q).any():
            row, column = (int(i) for i in np.argwhere(integers >= self.q)[0])
            got = f"a {integers[row, column]} in row {row}, integer {column}"
            raise invalid("X", f"must spell members of Z_q, q = {self.q}", got, "build it with encode")
        return np.asarray(integers)

    def target(self, X: ArrayLike) -> IdArray:
        """f_w of each row, int64 of shape (rows,); X is ±1 of shape (rows, inputs)."""
        return self._values(self.decode(X))

    def sample(self, m: int, seed: int | Stream = 0, start: int = 0) -> tuple[SignArray, IdArray]:
        """Rows start … start + m − 1 of the endless sequence of a seed: X int8 (m, inputs), y int64 (m,) in [0, p)."""
        rows, start = check_window(m, start)
        stream = as_stream(seed, "data")
        integers = uniform_integers(stream, self.q, rows * self.m, start * self.m).reshape(rows, self.m)
        labels = self._values(integers)
        if self.noise > 0.0:
            replaced = happens(stream.child("noise"), self.noise, rows, start)
            labels = np.where(replaced, uniform_integers(stream.child("labels"), self.p, rows, start), labels)
        return self.encode(integers), labels

    def _values(self, integers: IdArray) -> IdArray:
        products = integers * np.array(self.secret, dtype=np.int64) % self.q
        residues = products.sum(axis=1) % self.q
        return np.asarray(residues * self.p // self.q if self.rounding == "floor" else residues % self.p)


def uniform_integers(stream: Stream, bound: int, count: int, start: int = 0) -> IdArray:
    """Integers start … of an endless sequence uniform in [0, bound): ⌊word·bound / 2⁶⁴⌋ with 64-bit words.

    Any value is off its probability 1/bound by at most bound/2⁶⁴ of it, and by nothing for a power of two.
    """
    low, high = stream.words(2 * count, 2 * start).astype(np.uint64).reshape(count, 2).T
    factor, half = np.uint64(bound), np.uint64(32)
    return ((high * factor + (low * factor >> half)) >> half).astype(np.int64)
