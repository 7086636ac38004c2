# What the C++ extension exports (csrc/bindings). Arrays are allocated by the caller and filled in place.
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

LOSSES: tuple[str, ...]
ACTIVATIONS: tuple[str, ...]
SAMPLINGS: tuple[str, ...]

def isa() -> str: ...
def available_isas() -> list[str]: ...
def set_isa(name: str) -> None: ...
def philox_words(key: int, stream: int, first_block: int, skip: int, out: NDArray[np.uint32]) -> None: ...
def normal_numbers(key: int, stream: int, start: int, out: NDArray[np.float64]) -> None: ...
def permutation(key: int, stream: int, first_block: int, skip: int, out: NDArray[np.int64]) -> None: ...

class HalfspaceIndex:
    def __init__(self, method: str, dimension: int) -> None: ...
    def insert(
        self, ids: NDArray[np.int64], rows: NDArray[np.float32], offsets: NDArray[np.float32], threads: int
    ) -> int: ...
    def remove(self, ids: NDArray[np.int64], threads: int) -> int: ...
    def update(
        self, ids: NDArray[np.int64], rows: NDArray[np.float32], offsets: NDArray[np.float32], threads: int
    ) -> int: ...
    def query(
        self, rows: NDArray[np.float32], thresholds: NDArray[np.float32], threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def query_scores(
        self, rows: NDArray[np.float32], thresholds: NDArray[np.float32], threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]: ...
    def query_one(
        self, a: object, threshold: object, threads: int, scores: bool
    ) -> NDArray[np.int64] | tuple[NDArray[np.int64], NDArray[np.float32]] | None: ...
    def points(self) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]: ...
    @property
    def counters(self) -> list[int]: ...
    @property
    def size(self) -> int: ...
    @property
    def memory(self) -> int: ...

class Trainer:
    def __init__(
        self,
        hidden: NDArray[np.float32],
        bias: NDArray[np.float32],
        output: NDArray[np.float32],
        offset: float,
        loss: str,
        activation: str,
        threshold: float,
        sampling: str,
        boolean_labels: bool,
        key: int,
        batch_stream: int,
        epoch_stream: int,
        stop_error: float,
        checkpoints: list[int],
        support: list[int],
    ) -> None: ...
    def add_phase(
        self,
        steps: int,
        batch: int,
        rate: NDArray[np.float64],
        keep: NDArray[np.float64],
        truncation: NDArray[np.float64],
    ) -> None: ...
    def set_bits(self, bits: NDArray[np.uint64], labels: NDArray[np.float32], test: bool) -> None: ...
    def set_rows(self, rows: NDArray[np.float32], labels: NDArray[np.float32], test: bool) -> None: ...
    def export(self, hidden: NDArray[np.float32], bias: NDArray[np.float32], output: NDArray[np.float32]) -> None: ...
    @property
    def step(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def needs_rows(self) -> bool: ...
    @property
    def offset(self) -> float: ...
    @property
    def stopped(self) -> str | None: ...
    @property
    def diverged_step(self) -> int: ...
    @property
    def diverged_rate(self) -> float: ...
    @property
    def counters(self) -> list[int]: ...
    @property
    def records(self) -> list[list[float]]: ...

def advance(trainers: list[Trainer], seconds: float, threads: int) -> None: ...
def pack_rows(signs: NDArray[np.int8], words: NDArray[np.uint64]) -> bool: ...
def pack_columns(signs: NDArray[np.int8], words: NDArray[np.uint64]) -> bool: ...
def unpack_rows(words: NDArray[np.uint64], signs: NDArray[np.int8]) -> None: ...
def estimate_signs(
    columns: NDArray[np.uint64],
    labels: NDArray[np.uint64],
    samples: int,
    degree: int,
    first: int,
    last: int,
    threads: int,
    out: NDArray[np.float64],
) -> None: ...
def estimate_reals(
    columns: NDArray[np.uint64],
    labels: NDArray[np.float64],
    degree: int,
    first: int,
    last: int,
    threads: int,
    out: NDArray[np.float64],
) -> None: ...
@overload
def walsh(values: NDArray[np.float64], out: NDArray[np.float64], scale: float, threads: int) -> None: ...
@overload
def walsh(values: NDArray[np.float32], out: NDArray[np.float32], scale: float, threads: int) -> None: ...
@overload
def walsh(values: NDArray[np.int32], out: NDArray[np.int32], scale: int, threads: int) -> None: ...

class SubcubeProducts:
    def __init__(
        self,
        patterns: NDArray[np.uint8],
        group_bits: NDArray[np.int32],
        groups: NDArray[np.int32],
        starts: NDArray[np.int64],
        monomials: NDArray[np.int64],
        places: NDArray[np.uint32],
    ) -> None: ...
    def values(self, coefficients: NDArray[np.float64], values: NDArray[np.float64], threads: int) -> None: ...
    def sums(self, weights: NDArray[np.float64], sums: NDArray[np.float64], threads: int) -> None: ...

def monomial_gram(
    moments: NDArray[np.float64],
    n: int,
    binomials: NDArray[np.int64],
    sets: NDArray[np.int64],
    samples: float,
    out: NDArray[np.float64],
    threads: int,
) -> None: ...
def parity_search(
    columns: NDArray[np.uint64],
    labels: NDArray[np.uint64],
    examples: int,
    size: int,
    threads: int,
    members: NDArray[np.int64],
    correlations: NDArray[np.int64],
) -> list[int]: ...

class ActiveTrainer:
    def __init__(
        self,
        hidden: NDArray[np.float32],
        bias: NDArray[np.float32],
        output: NDArray[np.float32],
        threshold: float,
        anchors: NDArray[np.float32],
        reach: float,
        slack: float,
        threads: int,
    ) -> None: ...
    def place(self, moved: NDArray[np.float32]) -> int: ...
    def evaluate(self, values: NDArray[np.float64], gradients: NDArray[np.float32] | None) -> None: ...
    def update(self, slopes: NDArray[np.float32], rate: float) -> None: ...
    def missing(self) -> tuple[int, int] | None: ...
    def weights(self, hidden: NDArray[np.float32]) -> None: ...
    def fired(self, fired: NDArray[np.int64]) -> None: ...
    @property
    def listed(self) -> int: ...
    @property
    def counts(self) -> list[int]: ...

class PackedMlp:
    def __init__(
        self,
        inputs: int,
        hidden: NDArray[np.int64],
        outputs: int,
        skip: bool,
        frequencies: int,
        ladders: NDArray[np.int64],
    ) -> None: ...
    @property
    def size(self) -> int: ...
    def pack(self, flat: NDArray[np.float32], packed: NDArray[np.float32]) -> None: ...
    def unpack(self, packed: NDArray[np.float32], flat: NDArray[np.float32]) -> None: ...
    def epoch(
        self,
        packed: NDArray[np.float32],
        state: NDArray[np.float32],
        steps: int,
        x: NDArray[np.float32],
        gains: NDArray[np.float32],
        chosen: NDArray[np.int64],
        target: NDArray[np.float32],
        weight: NDArray[np.float32],
        loss: str,
        batch: int,
        optimiser: str,
        learning_rate: float,
        decay: float,
        beta1: float,
        beta2: float,
    ) -> float: ...
    def advance(
        self,
        packed: NDArray[np.float32],
        state: NDArray[np.float32],
        steps: int,
        x: NDArray[np.float32],
        gains: NDArray[np.float32],
        chosen: NDArray[np.int64],
        target: NDArray[np.float32],
        weight: NDArray[np.float32],
        loss: str,
        batch: int,
        optimiser: str,
        learning_rate: float,
        decay: float,
        beta1: float,
        beta2: float,
        key: int,
        stream: int,
        start: int,
        mean: NDArray[np.float32],
        newest: float,
        held_x: NDArray[np.float32],
        held_gains: NDArray[np.float32],
        held: NDArray[np.int64],
        out: NDArray[np.float64],
    ) -> float: ...
    def outputs(
        self,
        packed: NDArray[np.float32],
        x: NDArray[np.float32],
        gains: NDArray[np.float32],
        chosen: NDArray[np.int64],
        out: NDArray[np.float64],
    ) -> None: ...

def adamw_step(
    parameters: NDArray[np.float32],
    gradient: NDArray[np.float32],
    mean: NDArray[np.float32],
    square: NDArray[np.float32],
    rate: float,
    decay: float,
    beta1: float,
    beta2: float,
    tiny: float,
) -> None: ...
def periodic_values(
    x: NDArray[np.float32],
    mix: NDArray[np.float32],
    frequency: NDArray[np.float32],
    phase: NDArray[np.float32],
    bias: NDArray[np.float32],
    fed: NDArray[np.float32],
    cosines: NDArray[np.float32],
    sines: NDArray[np.float32],
) -> None: ...
def periodic_outputs(
    x: NDArray[np.float64],
    mix: NDArray[np.float64],
    frequency: NDArray[np.float64],
    phase: NDArray[np.float64],
    bias: NDArray[np.float64],
    fed: NDArray[np.float64],
) -> None: ...
def periodic_gradients(
    x: NDArray[np.float32],
    back: NDArray[np.float32],
    cosines: NDArray[np.float32],
    sines: NDArray[np.float32],
    mix: NDArray[np.float32],
    of_mix: NDArray[np.float32],
    of_frequency: NDArray[np.float32],
    of_phase: NDArray[np.float32],
    of_bias: NDArray[np.float32],
) -> None: ...
@overload
def bias_relu(hidden: NDArray[np.float32], bias: NDArray[np.float32]) -> None: ...
@overload
def bias_relu(hidden: NDArray[np.float64], bias: NDArray[np.float64]) -> None: ...
def relu_backward(
    back: NDArray[np.float32], hidden: NDArray[np.float32], bias_gradient: NDArray[np.float32]
) -> None: ...
def outer_relu_backward(
    errors: NDArray[np.float32],
    output: NDArray[np.float32],
    hidden: NDArray[np.float32],
    back: NDArray[np.float32],
    bias_gradient: NDArray[np.float32],
) -> None: ...

class ScreenedLayer:
    def __init__(
        self,
        weight: NDArray[Any],
        bias: NDArray[np.float32] | None,
        threshold: float,
        residual: bool,
        threads: int,
        thresholds: NDArray[np.float32] | None = None,
    ) -> None: ...
    def firing(
        self, x: NDArray[np.float32], threads: int, most: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], tuple[int, ...]]: ...
    def scores(self, x: NDArray[np.float32], resting: float, out: NDArray[np.float32], threads: int) -> None: ...
    def recode(self, neurons: NDArray[np.int64], threads: int) -> None: ...
    @property
    def memory(self) -> int: ...

class SparseBlock:
    def __init__(
        self,
        up: NDArray[np.float32],
        up_bias: NDArray[np.float32] | None,
        down: NDArray[np.float32],
        down_bias: NDArray[np.float32] | None,
        gate: NDArray[np.float32] | None,
        gate_bias: NDArray[np.float32] | None,
        activation: str,
        threshold: float,
        gated: str,
        residual: bool,
        threads: int,
    ) -> None: ...
    def forward(self, x: NDArray[np.float32], out: NDArray[np.float32], threads: int) -> tuple[int, ...]: ...
    @property
    def memory(self) -> int: ...

def down_neurons(
    weight: NDArray[Any],
    bias: NDArray[np.float32] | None,
    starts: NDArray[np.int64],
    neurons: NDArray[np.int64],
    values: NDArray[np.float32],
    out: NDArray[np.float32],
    threads: int,
) -> None: ...
def sparse_down(
    weight: NDArray[np.float32],
    bias: NDArray[np.float32] | None,
    always: NDArray[np.uint8] | None,
    h: NDArray[np.float32],
    out: NDArray[np.float32],
    threads: int,
) -> None: ...
