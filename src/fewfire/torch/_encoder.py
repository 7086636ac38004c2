"""Sparse autoencoders on the CPU, exactly: the features that fire on a row, their values, and the row made of them.

A feature j has the score z_j = ⟨w_j, x⟩ + b_j, with x − b_dec in place of x where the encoder centres, and gives

    relu: z where z > 0                       jumprelu: z where z > max(θ_j, 0)
    topk: z of the k largest z > 0, of equal ones the first
    gated: m where ⟨w_j, x⟩ + b_gate_j > 0 and m > 0, with the magnitude m = exp(r_mag_j)·⟨w_j, x⟩ + b_j

and 0 elsewhere. Features are found as the sparse block finds its neurons (csrc/kernels/sparse_block.hpp): codes with a
proved bound rule most of them out, and one float32 sum in one order decides the rest. So the same row has the same
features and values, to the bit, for every batch around it and number of threads. The matrix of all scores is never
made: rows pass in pieces. Without the C++ part the reference in NumPy scores all features, in float64 and one order.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fewfire._compressed_rows import CompressedRows
from fewfire._errors import InvalidArgument, invalid
from fewfire._extension import core
from fewfire._optional import require
from fewfire._threads import usable_cores
from fewfire._validate import check_choice, check_flag, check_integer, check_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, IdArray

    Floats = NDArray[np.float32]

torch: Any = require("torch", "torch", "fewfire.torch.SparseEncoder")

FeatureActivation = Literal["relu", "jumprelu", "topk", "gated"]

_TYPES = (torch.float32, torch.bfloat16, torch.float16)
_PIECE = 64  # rows that are searched together: their codes stay in the cache while those of the weights pass
_LARGEST = 1e37  # beyond, sums of float32 may overflow


@dataclass(frozen=True, eq=False)
class FeatureRows(CompressedRows):
    """The features that fire on each row, and their values; unpacks as `indptr, indices, values`.

    Parameters
    ----------
    indptr : int64 array of shape (rows + 1,)
        Row i owns `indices[indptr[i]:indptr[i + 1]]`.
    indices : int64 array of shape (total,)
        Features, ascending within a row.
    values : float32 array of shape (total,)
        One per index, above 0.
    width : int
        How many features there are.
    shape : tuple of int
        What the rows came in, without the last axis; one axis of all rows unless given.
    """

    values: Floats
    width: int
    shape: tuple[int, ...] = (-1,)

    def __iter__(self) -> Iterator[AnyArray]:
        return iter((self.indptr, self.indices, self.values))

    def row_values(self, i: int) -> Floats:
        """The values of row i, in the order of its features."""
        return self.values[self.indptr[i] : self.indptr[i + 1]]

    def to_torch(self) -> Any:
        """A `torch.sparse_csr_tensor` of shape (rows, width) that shares this memory."""
        parts = map(torch.from_numpy, self)
        with warnings.catch_warnings():  # of a beta state
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(*parts, size=(self.rows, self.width))

    def to_scipy(self) -> Any:
        """A `scipy.sparse.csr_array` of shape (rows, width)."""
        from scipy.sparse import csr_array

        return csr_array((self.values, self.indices, self.indptr), shape=(self.rows, self.width))


class SparseEncoder:
    """A sparse autoencoder, transcoder or its encoder alone, at the cost of the features that fire, exactly.

    A feature whose float64 score lies outside the band ε·‖w‖·‖x‖ around its threshold θ, ε being `epsilon`, is decided
    as float64 decides; inside, and within 2⁻²⁴·|θ| of it, the rounding of a score to float32, the decision is the same
    on every call. Weights stay where they are, and must not change; `extra_bytes` is what is kept besides them.

    Parameters
    ----------
    W_enc : tensor of shape (width, inputs)
        A row per feature; float32, bfloat16 or float16, on the CPU. SAELens stores the transpose: pass `W_enc.T`, which
        is copied, or use `of`.
    b_enc : tensor of shape (width,), or None
        The biases; of "gated" those of the magnitudes.
    W_dec : tensor of shape (width, outputs), optional
        A row per feature, in any of these types. Without it there is no `decode`.
    b_dec : tensor of shape (outputs,), optional
    activation : {"relu", "jumprelu", "topk", "gated"}
        BatchTopK is "jumprelu" at inference.
    threshold : tensor of shape (width,), or number
        Of "jumprelu"; values below 0 count as 0.
    k : int
        Of "topk": at most so many features fire, those with the largest scores above 0, of equal ones the first.
    centre : bool
        Subtract `b_dec` from the input.
    b_gate, r_mag : tensors of shape (width,)
        Of "gated": the gate's biases and the logarithms of the magnitudes' scales (0 unless given).
    threads : int, optional
        By default as many as torch uses at the time of a call.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> W_enc = W_dec = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])  # three features of two inputs
    >>> encoder = ft.SparseEncoder(W_enc, None, W_dec, torch.zeros(2), activation="jumprelu", threshold=0.5)
    >>> x = torch.tensor([[2.0, 0.25], [-1.0, 0.75]])
    >>> features = encoder.encode(x)
    >>> features.indices.tolist(), features.values.tolist(), features.indptr.tolist()
    ([0, 2, 1], [2.0, 1.125, 0.75], [0, 2, 3])
    >>> encoder.decode(features).tolist()  # encoder(x) does both
    [[2.5625, 0.5625], [0.0, 0.75]]
    """

    def __init__(
        self,
        W_enc: Any,
        b_enc: Any,
        W_dec: Any = None,
        b_dec: Any = None,
        *,
        activation: FeatureActivation = "relu",
        threshold: Any = None,
        k: int | None = None,
        centre: bool = False,
        b_gate: Any = None,
        r_mag: Any = None,
        threads: int | None = None,
    ) -> None:
        self._given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self.activation: str = check_choice("activation", activation, ("relu", "jumprelu", "topk", "gated"))
        self.centre = check_flag("centre", centre)
        self.threads = None if threads is None else check_integer("threads", threads, 1, 1024)
        needs = {"jumprelu": "threshold", "topk": "k", "gated": "b_gate"}
        for kind, name in (*needs.items(), ("gated", "r_mag")):
            if kind != activation and self._given[name] is not None:
                raise invalid(name, f"may be given with activation={kind!r} only", activation, "leave it out")
        if activation in needs and self._given[needs[activation]] is None:
            raise invalid(needs[activation], f"must be given with activation={activation!r}", None)
        self._watched: list[tuple[str, Any, int]] = []
        self._enc, most = self._matrix("W_enc", W_enc)
        self.width, self.inputs = map(int, self._enc.shape)
        self._dec, self.outputs = None, self.inputs
        if W_dec is not None:
            self._dec = self._matrix("W_dec", W_dec, self.width)[0]
            self.outputs = int(self._dec.shape[1])
        if self.centre and (b_dec is None or self.outputs != self.inputs):
            rule = f"must be given, with one entry for each of the {self.inputs} inputs, to centre them"
            raise invalid("b_dec", rule, None if b_dec is None else f"shape ({self.outputs},)", "or pass centre=False")
        bias = None if b_enc is None else self._vector("b_enc", b_enc, self.width)
        self._b_dec = None if b_dec is None else self._vector("b_dec", b_dec, self.outputs)
        self.k = None if k is None else min(check_integer("k", k, 1), self.width)
        self._scale: Floats | None = None
        self._magnitude: Floats | None = None
        self._thresholds: Floats | None = None
        if activation == "jumprelu":
            if not isinstance(threshold, torch.Tensor):
                threshold = torch.full((self.width,), check_number("threshold", threshold), dtype=torch.float32)
            self._thresholds = np.maximum(self._vector("threshold", threshold, self.width), np.float32(0))
        elif activation == "gated":
            self._thresholds = -self._vector("b_gate", b_gate, self.width)
            self._magnitude = np.zeros(self.width, np.float32) if bias is None else bias
            logs = self._vector("r_mag", torch.zeros(self.width) if r_mag is None else r_mag, self.width)
            with np.errstate(over="ignore"):
                self._scale, bias = np.exp(logs, dtype=np.float64).astype(np.float32), None
        self._bias = bias
        parts = [part for part in (bias, self._thresholds, self._magnitude) if part is not None]
        self._shift = sum(float(np.abs(part).max(initial=0)) for part in parts)
        self._largest = most * self.inputs * (1.0 if self._scale is None else float(self._scale.max(initial=1)))
        native = core()
        self._native = native and native.ScreenedLayer(
            _words(self._enc), bias, 0.0, True, usable_cores(), self._thresholds
        )

    @classmethod
    def of(cls, module: Any, *, threads: int | None = None) -> SparseEncoder:
        """The encoder of a module whose weights are laid out in a known way, tried on rows against the module itself.

        Known are SAELens' `StandardSAE`, `JumpReLUSAE`, `TopKSAE` and `GatedSAE`, autoencoders of `dictionary_learning`
        with the same attributes or two linear layers, and a `Sequential` of a linear layer, a ReLU and perhaps a second
        one. Whether the input is centred is found by trying. SAELens' `W_enc` is copied: it has a column per feature.

        Examples
        --------
        >>> import torch
        >>> import fewfire.torch as ft
        >>> module = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
        >>> ft.SparseEncoder.of(module)
        SparseEncoder(8 inputs, 64 features, 'relu', 8 outputs)
        """
        from fewfire.torch._autoencoders import read_module

        return cls(**read_module(module), threads=threads)

    def encode(self, x: Any) -> FeatureRows:
        """The features that fire on rows x of shape (..., inputs), with their values; no gradients flow.

        x is float32, bfloat16 or float16 on the CPU, and is computed with in float32.
        """
        self._unchanged()
        if torch.is_grad_enabled() and isinstance(x, torch.Tensor) and x.requires_grad:
            raise invalid("x", "must not require gradients, which do not flow", "a tensor that does", "pass x.detach()")
        _check_tensor("x", x)
        if x.ndim == 0 or x.shape[-1] != self.inputs:
            raise invalid("x", f"must have a last axis of the {self.inputs} inputs", f"shape {tuple(x.shape)}")
        rows = x.detach().reshape(-1, self.inputs)
        pieces = rows.split(_PIECE) if len(rows) > _PIECE else (rows,)
        parts, shape = [self._encode(piece) for piece in pieces], tuple(x.shape[:-1])
        if len(parts) == 1:
            return FeatureRows(*parts[0], self.width, shape)
        starts = np.cumsum([0, *(len(indices) for _, indices, _ in parts)])
        indptr = [part[0][:-1] + start for part, start in zip(parts, starts, strict=False)]
        indices, values = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        return FeatureRows(np.append(np.concatenate(indptr), starts[-1]), indices, values, self.width, shape)

    def decode(self, features: FeatureRows) -> Any:
        """Σ value·(row of W_dec) + b_dec over each row's features, which alone are read: float32, (..., outputs)."""
        self._unchanged()
        width = features.width if isinstance(features, FeatureRows) else 0
        if width != self.width:
            got = f"a {type(features).__name__}" + (f" of {width}" if width else "")
            raise invalid("features", f"must be rows of {self.width} features, as encode gives them", got)
        indptr, indices = (np.ascontiguousarray(part, dtype=np.int64) for part in (features.indptr, features.indices))
        values = np.ascontiguousarray(features.values, dtype=np.float32)
        ends = [*indptr[:1].tolist(), *indptr[-1:].tolist()]
        if ends != [0, len(indices)] or len(values) != len(indices) or np.diff(indptr).min(initial=0) < 0:
            rule = "must have an indptr that rises from 0 to the number of indices, and as many values"
            raise invalid("features", rule, f"{ends}, {len(indices)} indices and {len(values)} values")
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.width:
            rule = f"must have indices from 0 to {self.width - 1}"
            raise invalid("features", rule, f"{indices.min()} to {indices.max()}")
        return self._decode(FeatureRows(indptr, indices, values, width, features.shape))

    def __call__(self, x: Any) -> Any:
        """The reconstruction of rows x of shape (..., inputs): `decode(encode(x))`."""
        return self._decode(self.encode(x))

    def _decode(self, features: FeatureRows) -> Any:
        if self._dec is None:
            raise InvalidArgument("W_dec must be given for decoding; got None. Remedy: pass W_dec to SparseEncoder.")
        indptr, indices, values = features
        out, native = np.empty((features.rows, self.outputs), dtype=np.float32), core()
        if native is not None:
            native.down_neurons(_words(self._dec), self._b_dec, indptr, indices, values, out, self._threads())
        else:
            for row, start, end in zip(out, indptr, indptr[1:], strict=False):
                read = self._dec[torch.from_numpy(indices[start:end])].double().numpy()
                row[:] = (values[start:end, None] * read).sum(axis=0) + (0 if self._b_dec is None else self._b_dec)
        return torch.from_numpy(out).reshape(*features.shape, self.outputs)

    @property
    def epsilon(self) -> float:
        """ε: how far a float32 score may be from the float64 one, in parts of ‖w‖·‖x‖: ⌈inputs/64⌉ + 9 roundings."""
        unit = (-(-self.inputs // 64) + 9) * 2.0**-24
        return unit / (1 - unit)

    @property
    def extra_bytes(self) -> int:
        """Memory besides the given weights: codes, 1.5 bytes per weight of W_enc, and copies of transposed weights."""
        pairs = ((self._enc, self._given["W_enc"]), (self._dec, self._given["W_dec"]))
        copies = [held for held, given in pairs if held is not None and held.data_ptr() != given.data_ptr()]
        codes = 0 if self._native is None else int(self._native.memory)
        return codes + sum(int(held.numel() * held.element_size()) for held in copies)

    def __repr__(self) -> str:
        out = "" if self._dec is None else f", {self.outputs} outputs"
        most = "" if self.k is None else f", k={self.k}"
        return f"SparseEncoder({self.inputs} inputs, {self.width} features, {self.activation!r}{most}{out})"

    def __getstate__(self) -> dict[str, Any]:
        return self._given

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def _encode(self, piece: Any) -> tuple[IdArray, IdArray, Floats]:
        """`indptr`, `indices` and `values` of at most _PIECE rows."""
        x = piece.float()
        if self.centre:
            x = x - torch.from_numpy(self._b_dec)
        rows = np.ascontiguousarray(x.numpy())
        size = float(np.abs(rows).max(initial=0)) * self._largest + self._shift
        if not size < _LARGEST:
            rule = f"must be finite, and small enough for sums in float32 (at most {_LARGEST:g} together)"
            raise invalid("x", rule, f"a row of which they may be {size:g}", "scale it, or mask such rows")
        if self._native is not None:
            indptr, indices, values, _ = self._native.firing(rows, self._threads(), self.k or 0)
        else:
            indptr, indices, values = self._reference(rows)
        if self._scale is None or self._magnitude is None:
            return indptr, indices, values
        values = self._scale[indices] * values + self._magnitude[indices]
        keep = values > 0
        return np.append(0, np.cumsum(keep))[indptr], indices[keep], values[keep]

    def _reference(self, rows: Floats) -> tuple[IdArray, IdArray, Floats]:
        """The same without the C++ part."""
        found: list[list[tuple[IdArray, Floats]]] = [[] for _ in rows]
        step = max(1, (1 << 22) // (self.inputs + 64))
        for first in range(0, self.width, step):
            weights = self._enc[first : first + step].double().numpy()
            limit = np.float32(0) if self._thresholds is None else self._thresholds[first : first + step]
            for row, own in zip(rows, found, strict=True):
                z = ordered_sums(weights * row)
                if self._bias is not None:
                    z = z + self._bias[first : first + step]
                score = z.astype(np.float32)
                above = np.flatnonzero(score > limit)
                own.append((first + above, score[above]))
        merged = [tuple(np.concatenate(part) for part in zip(*own, strict=True)) for own in found]
        if self.k is not None:
            kept = [np.sort(np.lexsort((indices, -values))[: self.k]) for indices, values in merged]
            merged = [(indices[chosen], values[chosen]) for (indices, values), chosen in zip(merged, kept, strict=True)]
        indptr = np.cumsum([0, *(len(indices) for indices, _ in merged)])
        empty = (np.zeros(0, np.int64), np.zeros(0, np.float32))
        indices, values = (np.concatenate(part) for part in zip(empty, *merged, strict=True))
        return indptr, indices, values

    def _threads(self) -> int:
        return int(self.threads or torch.get_num_threads())

    def _matrix(self, name: str, weight: Any, width: int | None = None) -> tuple[Any, float]:
        """A weight row by row, and the largest size of its numbers."""
        _check_tensor(name, weight)
        if weight.ndim != 2 or 0 in weight.shape or width not in (None, weight.shape[0]):
            rule = f"must have a row for each of the {width or 'width'} features and a column for each coordinate"
            raise invalid(name, rule, f"shape {tuple(weight.shape)}", "SAELens' W_enc has to be transposed")
        self._watch(name, weight)
        held = weight.detach().contiguous()
        low, high = map(float, torch.aminmax(held))
        return held, self._finite(name, max(-low, high), low + high)

    def _vector(self, name: str, values: Any, length: int) -> Floats:
        """A float32 copy."""
        _check_tensor(name, values)
        if tuple(values.shape) != (length,):
            raise invalid(name, f"must have the shape ({length},)", f"shape {tuple(values.shape)}")
        self._watch(name, values)
        own: Floats = values.detach().float().numpy().copy()
        self._finite(name, float(np.abs(own).max(initial=0)))
        return own

    def _finite(self, name: str, largest: float, also: float = 0.0) -> float:
        if not math.isfinite(largest + also):
            raise invalid(name, "must be finite", f"a tensor with {largest}", "leave out features that are not")
        return largest

    def _watch(self, name: str, tensor: Any) -> None:
        if not tensor.is_inference():
            self._watched.append((name, tensor, tensor._version))

    def _unchanged(self) -> None:
        """Codes stand for the weights as they were."""
        for name, tensor, version in self._watched:
            if tensor._version != version:
                raise invalid(name, "must not change", "a tensor that was changed in place", "build the encoder anew")


def ordered_sums(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over the last axis in one order, whatever the other axes are: 64 partial sums, folded in halves."""
    count = terms.shape[-1]
    padded = np.zeros((*terms.shape[:-1], -(-count // 64), 64))
    padded.reshape(*terms.shape[:-1], -1)[..., :count] = terms
    sums = padded[..., 0, :]
    for part in range(1, padded.shape[-2]):
        sums = sums + padded[..., part, :]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    return sums[..., 0]


def _check_tensor(name: str, value: object) -> None:
    """A strided tensor on the CPU in float32 or half precision."""
    if not isinstance(value, torch.Tensor):
        raise invalid(name, "must be a torch.Tensor", f"a {type(value).__name__}", "use torch.from_numpy for arrays")
    if value.device.type != "cpu":
        remedy = "call .cpu(); on a GPU encode densely, by the module itself"
        raise invalid(name, "must be on the CPU, where alone the encoder runs", f"a tensor on {value.device}", remedy)
    if value.dtype not in _TYPES or value.layout != torch.strided:
        rule = "must be a dense tensor of float32, bfloat16 or float16"
        raise invalid(name, rule, f"a tensor of {value.dtype}, {value.layout}", "call .float()")


def _words(weight: Any) -> AnyArray:
    """A tensor's memory as the C++ part takes it: bfloat16 as words."""
    is_brain = weight.dtype == torch.bfloat16
    words: AnyArray = weight.view(torch.int16).numpy().view(np.uint16) if is_brain else weight.numpy()
    return words
