"""A problem from outside the package: the majority of an odd number of bits."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewfire.problems import SignProblem


@dataclass(frozen=True)
class ToyMajority(SignProblem):
    name: ClassVar = "toy_majority"
    n: int
    k: int
    noise: float = 0.0

    @property
    def inputs(self):
        return self.n

    def _values(self, X):
        return np.where(X[:, : self.k].sum(axis=1, dtype=np.int64) > 0, 1, -1).astype(np.int8)
