"""Random networks of the class H(n, s, k) of sparse-activations, k-sparse on every input by construction.

The s neurons are k blocks, as equal in size as they can be. A block of t neurons reads b = ⌈log₂ t⌉ random
address coordinates; its neurons have distinct random patterns α of them, so that at most one can fire:

- "dense" (Appendix A): σ(⟨w_α, y⟩ + Γ(⟨x, α⟩ − b)) with y the other q = n − b coordinates, w_α a uniform
  unit vector and Γ = √q; a neuron whose address is met fires on about half of the inputs.
- "junta" (Theorem 13): σ(⟨x, α⟩ − b + 1); a neuron whose address is met fires, with value 1.

Output weights are independent fair signs, and the neurons of a block are neighbours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fewfire._cube import cube
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_choice, check_integer
from fewfire.networks._two_layer import TwoLayer
from fewfire.networks.construct._dense_weights import unit_rows

if TYPE_CHECKING:
    from fewfire._types import Float64Array


def random_member(n: int, s: int, k: int, seed: int | Stream, kind: str = "dense") -> TwoLayer:
    """A random network of n inputs and exactly s neurons of which at most k fire on any input of the cube.

    Parameters
    ----------
    n : int
        Coordinates of an input.
    s : int
        Neurons; at most k·2^(n − 1) of kind "dense" and k·2^n of kind "junta".
    k : int
        Blocks, each with at most one active neuron; at most s.
    seed : int or Stream
        Of the draw (stream "construct").
    kind : "dense" or "junta"
        Whether neurons have dense weights or look only at the address of their block.
    """
    n, s = check_integer("n", n, 1), check_integer("s", s, 1)
    k = check_integer("k", k, 1, s, "no more neurons can fire than there are")
    dense = check_choice("kind", kind, ("dense", "junta")) == "dense"
    largest = -(-s // k)
    most = n - 1 if dense else n
    if (largest - 1).bit_length() > most:
        rule = f"must be at most k·2**{most} = {k * 2**most} for {n} inputs and kind {kind!r}"
        raise invalid("s", rule, s, "raise n or k")
    stream = as_stream(seed, "construct")
    sizes = [s // k + (block < s % k) for block in range(k)]
    blocks = [_block(stream.child(f"block {i}"), n, size, dense) for i, size in enumerate(sizes)]
    hidden, bias = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return TwoLayer(hidden, bias, stream.child("output").signs(s))


def _block(stream: Stream, n: int, size: int, dense: bool) -> tuple[Float64Array, Float64Array]:
    """Weights of shape (size, n) and biases of shape (size,) of which at most one neuron fires."""
    b = (size - 1).bit_length()
    order = stream.child("coordinates").subsets(1, n, n)[0]
    address, others = order[:b], order[b:]
    patterns = cube(b)[stream.child("patterns").subsets(1, 2**b, size)[0]]
    hidden = np.zeros((size, n))
    if not dense:
        hidden[:, address] = patterns
        return hidden, np.full(size, 1.0 - b)
    gamma = math.sqrt(len(others))
    hidden[:, address] = gamma * patterns
    hidden[:, others] = unit_rows(stream.child("weights"), size, len(others))
    return hidden, np.full(size, -gamma * b)
