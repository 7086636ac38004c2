"""Networks with one neuron per pattern of some coordinates, so that few fire: juntas, indexing, random members.

A neuron σ(Γ(⟨α, x_S⟩ − p) + rest) of the pattern α of p coordinates S loses at least 2Γ when x_S differs from α, since
one differing coordinate already costs 2. With Γ large enough for the rest, at most one neuron fires.

- `junta` (proof of sparse-activations, Theorem 13): σ(⟨α, x_S⟩ − p + 1) is 1 when x_S = α and 0 otherwise; its output
  weight is the value at α.
- `indexing` (section 1): an input is (x, y): x of b coordinates names a position in y, which has 2^b. The position is
  the integer written in x, most significant coordinate first, with −1 for the digit 0 and +1 for 1.
- `dense_weights` (Appendix A), whose weights are not sparse: an input is (x, y) of b and q coordinates, and the neuron
  of α computes σ(⟨w_α, y⟩ + Γ(⟨x, α⟩ − b)). Since |⟨w_α, y⟩| ≤ √q for a unit vector w_α, Γ = √q silences all neurons
  but the one of α = x; a smaller Γ of order √log s does so for most inputs.
- `random_member` of the class H(n, s, k), k-sparse on every input by construction: the s neurons are k blocks, as equal
  in size as they can be. A block of t neurons reads b = ⌈log₂ t⌉ random address coordinates; its neurons have distinct
  random patterns α of them. "dense" (Appendix A): σ(⟨w_α, y⟩ + Γ(⟨x, α⟩ − b)) with y the other q = n − b coordinates,
  w_α a uniform unit vector and Γ = √q; a neuron whose address is met fires on about half of the inputs. "junta"
  (Theorem 13): σ(⟨x, α⟩ − b + 1); a neuron whose address is met fires, with value 1. Output weights are independent
  fair signs, and the neurons of a block are neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fewfire._cube import MAX_EXACT, cube
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._types import Float64Array
from fewfire._validate import check_choice, check_finite, check_integer, check_number, check_support
from fewfire.networks._two_layer import TwoLayer
from fewfire.networks.construct._lifted import digits


def junta(n: int, support: Sequence[int], table: ArrayLike) -> TwoLayer:
    """The network of width 2^p that computes a function of p of n coordinates, one neuron active on every input.

    Parameters
    ----------
    n : int
        How many coordinates an input has.
    support : sequence of p distinct coordinates
    table : array of shape (2^p,)
        The values: bit i of the index is set iff x[support[i]] = −1.

    Returns
    -------
    TwoLayer
        In float64, with W = √p·max|table| and B = |p − 1|·max|table|.

    Examples
    --------
    >>> import fewfire as ff
    >>> majority = [1, 1, 1, -1, 1, -1, -1, -1]
    >>> network = ff.networks.construct.junta(n=10, support=[1, 4, 7], table=majority)
    >>> network.width, ff.networks.check_sparsity(network).max_active
    (8, 1)
    """
    n = check_integer("n", n, 1)
    members = check_support("support", support, n)
    p = len(members)
    if p > MAX_EXACT:
        raise invalid("support", f"must have at most {MAX_EXACT} coordinates", p, "the network has 2**p neurons")
    values = np.asarray(table)
    if values.shape != (2**p,) or values.dtype.kind not in "biuf":
        rule = f"must hold {2**p} numbers, one for each pattern of the {p} coordinates of support"
        raise invalid("table", rule, f"shape {values.shape}, dtype {values.dtype}", "use the order of the index bits")
    hidden = np.zeros((2**p, n))
    hidden[:, members] = cube(p)
    return TwoLayer(hidden, np.full(2**p, 1.0 - p), check_finite("table", values.astype(np.float64)))


def indexing(b: int, signed: bool = False) -> TwoLayer:
    """The network on b + 2^b coordinates that returns the named bit of y, with at most one neuron active.

    The neuron of α has preactivation ⟨α, x⟩ + y_α/2 − b + 1/2: (1 + y_α)/2 when x = α and below 0 otherwise.

    Parameters
    ----------
    b : int from 1 to 12
        Coordinates of x.
    signed : bool
        False: values 1 and 0 for a bit +1 and −1, as printed. True: values +1 and −1.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.construct.indexing(b=2)
    >>> X, y = ff.problems.Indexing(2).sample(50, seed=0)
    >>> network.width, ff.networks.check_sparsity(network).max_active
    (4, 1)
    """
    b = check_integer("b", b, 1, 12, "the network has 2**b neurons with b + 2**b weights each")
    addresses = digits(np.arange(2**b)[:, None], b)[:, ::-1]
    hidden = np.concatenate([addresses, 0.5 * np.eye(2**b)], axis=1)
    bias, output = np.full(2**b, 0.5 - b), np.ones(2**b)
    return TwoLayer(hidden, bias, 2 * output, -1.0) if signed else TwoLayer(hidden, bias, output)


def unit_rows(stream: Stream, rows: int, columns: int) -> Float64Array:
    """Independent uniform unit vectors: shape (rows, columns)."""
    gaussian = stream.normal((rows, columns))
    return np.asarray(gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True))


def dense_weights(
    b: int, q: int, weights: ArrayLike | None = None, seed: int | Stream = 0, gamma: float | None = None
) -> TwoLayer:
    """The network of width 2^b on b + q coordinates that returns σ(⟨w_x, y⟩) at (x, y).

    Parameters
    ----------
    b, q : int
        Coordinates of x, at most 20, and of y.
    weights : array of shape (2^b, q), optional
        The unit vectors w_α as rows: bit i of the row number is set iff α_i = −1. Drawn uniformly by default.
    seed : int or Stream
        Of the drawn weights (stream "construct").
    gamma : float, optional
        Γ > 0; √q by default, with which at most one neuron fires on every input.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.construct.dense_weights(b=2, q=4)
    >>> ff.networks.check_sparsity(network).max_active
    1
    """
    b = check_integer("b", b, 1, 20, "the network has 2**b neurons")
    q = check_integer("q", q, 1)
    gamma = math.sqrt(q) if gamma is None else check_number("gamma", gamma, 0.0, open_low=True)
    if weights is None:
        vectors = unit_rows(as_stream(seed, "construct"), 2**b, q)
    else:
        vectors, shape = np.asarray(weights, dtype=np.float64), (2**b, q)
        if vectors.shape != shape:
            raise invalid("weights", f"must have shape {shape}, one row per pattern of x", f"shape {vectors.shape}")
        lengths = np.linalg.norm(vectors, axis=1)
        wrong = np.flatnonzero(~(np.abs(lengths - 1) <= 1e-6))  # written so that NaN is wrong too
        if len(wrong):
            got = f"a norm of {lengths[wrong[0]]:g} in row {wrong[0]}"
            raise invalid("weights", "must have rows of norm 1", got, "divide each row by its norm")
    hidden = np.concatenate([gamma * cube(b), vectors], axis=1)
    return TwoLayer(hidden, np.full(2**b, -gamma * b), np.ones(2**b))


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

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.construct.random_member(12, s=20, k=2, seed=0)
    >>> ff.networks.check_sparsity(network).max_active
    2
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
