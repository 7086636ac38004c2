"""Learned waves: beside input x_j the network sees v_j = bias_j + Σ_k mix_jk · cos(2π·frequency_jk·x_j + phase_jk).

A first layer of kinks needs many neurons for a target that goes up and down along one column; waves that learn their
frequencies give it such shapes at once (what they bring: Gorishniy, Rubachev and Babenko, On Embeddings for Numerical
Features in Tabular Deep Learning, 2022). csrc/kernels/waves.hpp adds them up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fewfire.learners.sparse_init import _passes as reference
from fewfire.learners.sparse_init._passes import passes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._random import Stream

    Floats = NDArray[np.floating[Any]]

COUNT = 16
"""Waves an input."""
FREQUENCY = 0.1
"""Deviation of the frequencies at the start: a tenth of a turn for an input one deviation away."""


class Waves(NamedTuple):
    """Arrays (inputs, waves), and `bias` (inputs,)."""

    mix: Floats
    frequency: Floats
    phase: Floats
    bias: Floats


def draw_waves(waves: Waves, stream: Stream) -> None:
    """Fill in a random start: low frequencies, any phase, sums of variance ½."""
    shape = waves.mix.shape
    waves.mix[:] = stream.child("mix").normal(shape) / np.sqrt(shape[1])
    waves.frequency[:] = FREQUENCY * stream.child("frequency").normal(shape)
    waves.phase[:] = np.pi * (2 * stream.child("phase").uniform(shape) - 1)
    waves.bias[:] = 0


class WaveInputs:
    """What a network with waves is fed, up to `rows` rows at a time, and the gradients of its waves.

    Parameters
    ----------
    waves : Waves
        Read at every call.
    rows : int
    gradient : bool
        Whether `differentiate` will be called.
    """

    def __init__(self, waves: Waves, rows: int, *, gradient: bool = True) -> None:
        inputs, count = waves.mix.shape
        dtype = waves.mix.dtype
        self.waves, self._fed = waves, np.empty((rows, 2 * inputs), dtype)
        self._passes = passes() if dtype == np.float32 else reference
        # The twins can do without the sines of a prediction; in C++ they come with the cosines.
        kept = gradient or self._passes is not reference
        self._cosines = np.empty((rows, inputs * count), dtype)
        self._sines = np.empty((rows, inputs * count if kept else 0), dtype)
        self._back = np.empty((rows, inputs if gradient else 0), dtype)

    def fed(self, X: Floats) -> Floats:
        """[X, v] (rows, 2·inputs); overwritten by the next call."""
        rows = slice(0, len(X))
        fed = self._fed[rows]
        self._passes.wave_values(
            np.ascontiguousarray(X), *self.waves, fed, self._cosines[rows], self._sines[rows]
        )  # fmt: skip
        return fed

    def differentiate(self, X: Floats, back: Floats, weights: Floats, errors: Floats, skip: Floats | None, into: Waves
                      ) -> None:  # fmt: skip
        """Gradients into `into`, right after `fed(X)`.

        Parameters
        ----------
        back : array (rows, width)
            Derivative by the scores of the first hidden layer, whose weights (width, 2·inputs) are `weights`.
        errors : array (rows, outputs)
            Derivative by the outputs, which `skip` (outputs, 2·inputs) reaches directly.
        """
        rows, inputs = slice(0, len(X)), X.shape[1]
        slopes = np.matmul(back, weights[:, inputs:], out=self._back[rows])
        if skip is not None:
            slopes += errors @ skip[:, inputs:]
        self._passes.wave_gradients(
            np.ascontiguousarray(X), slopes, self._cosines[rows], self._sines[rows], self.waves.mix, *into
        )
