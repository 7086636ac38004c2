"""Array types used in signatures. Shapes are given in each docstring."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

SignArray: TypeAlias = NDArray[np.int8]
"""Values +1 and −1."""

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""float32 or float64."""

Float64Array: TypeAlias = NDArray[np.float64]
IdArray: TypeAlias = NDArray[np.int64]
WordArray: TypeAlias = NDArray[np.uint64]
"""Bit-packed signs: −1 is a set bit."""

AnyArray: TypeAlias = NDArray[Any]
