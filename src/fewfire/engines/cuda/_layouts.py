"""Which kernel serves a run, in which shape, and what it takes.

A layout depends on the run alone, never on how many runs there are: sums then run in the same order whether a run is
trained alone or among thousands, and a run repeats bit for bit.

Resident layouts keep a run's weights on the chip as tiles of 16 neurons × 16·K columns, 8·K registers per lane. Where
four warps multiply together (Hopper's `wgmma`), some blocks of 16 columns per tile are parked in shared memory, so
that a warp has more tiles and what it does once per step counts less:

=========  ===========  ======================  ==========================================
K          inputs       Hopper: tiles × warps   elsewhere: tiles per warp, warps per block
=========  ===========  ======================  ==========================================
1 … 7      up to 111    4 × 8, narrow 2 × 4     2, up to 8
8 … 14     112 … 223    2 × 8, narrow 1 × 4     1, up to 12
15 … 16    224 … 255    2 × 8, narrow 1 × 4     1, up to 8
17 … 19    256 … 303    1 × 8, wide 2 × 8       1, up to 8
20         304 … 319    1 × 8, narrow 1 × 4     1, up to 8
=========  ===========  ======================  ==========================================

Up to 16 neurons, on Hopper 32, are one warp. A run that needs more than one block has `parts` of them, which exchange
32 partial sums per step. Wider still, with one block on each multiprocessor and not enough room, tiles stream from
memory.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

from fewfire._cuda._device import Device

BATCH = 32
"""Examples per step of the resident kernel."""

TILE = 16
"""Neurons per tile."""

HOPPER = 90
"""The architecture whose warps multiply four at a time."""

HALF_FULL = 4
"""Inputs in the last block of 16 columns that leave its second half free; the bias then ends the first."""

MOST_COLUMNS = 20
"""Largest K: a tile of 8·K registers still leaves enough for the products."""

DEFINED = (
    *("K", "TILES", "WARPS", "PARTS", "MIN_BLOCKS", "KEEP_SCORES"),
    *("AT_ONCE", "STREAMED", "WARPGROUP", "PARKED", "HALF"),
)
"""What the fields of a layout are in the kernels, in their order."""


@dataclass(frozen=True)
class KernelLayout:
    """How a run lies on the chip.

    Parameters
    ----------
    columns : int
        K: blocks of 16 columns, inputs and bias; 0 for the general kernel.
    tiles, warps, parts : int
        Tiles per warp, warps per block, blocks per run.
    blocks : int
        Blocks that should fit on one multiprocessor, which bounds the registers of a thread.
    keeps_scores : bool
        Whether scores are kept until the output weights are updated; else they are found from the weights.
    together : int
        Tiles that a warp takes through a pass side by side; divides `tiles`.
    streamed : bool
        Whether tiles pass through the registers from memory, because there are more than registers hold.
    warpgroup : bool
        Whether four warps multiply together (Hopper's wgmma); `warps` is then a multiple of 4.
    parked : int
        Blocks of 16 columns per tile that lie in shared memory instead of registers; only with `warpgroup`.
    half : bool
        Whether the last eight columns of the last block are in use nowhere, so that they cost nothing.
    """

    columns: int = 0
    tiles: int = 1
    warps: int = 8
    parts: int = 1
    blocks: int = 1
    keeps_scores: bool = True
    together: int = 1
    streamed: bool = False
    warpgroup: bool = False
    parked: int = 0
    half: bool = False

    @property
    def fast(self) -> bool:
        """Whether tensor cores serve it; else it is the general kernel."""
        return self.columns > 0

    def definitions(self) -> dict[str, int]:
        """What the kernel is compiled with, besides loss and source."""
        return dict(zip(DEFINED, map(int, astuple(self)), strict=True))

    def at_once(self, device: Device, blocks: int | None = None) -> int:
        """How many runs the device trains side by side, `blocks` of them on one multiprocessor."""
        return (blocks or self.blocks) * device.multiprocessors // self.parts


GENERAL = KernelLayout()
"""One block per run, weights in global memory."""


def choose_layout(inputs: int, width: int, device: Device, whole_slopes: bool = True) -> KernelLayout:
    """The layout of a run of ±1 inputs, ReLU and batches of 32; GENERAL where a tile does not fit into registers.

    `whole_slopes` is whether the loss has slopes of 0 and ±1 only.
    """
    columns, count = inputs // TILE + 1, -(-width // TILE)
    if columns > MOST_COLUMNS:
        return GENERAL
    if count == 1:
        return KernelLayout(columns, 1, 1, 1, 12 if columns <= 4 else 8)
    if device.architecture == HOPPER and count > 2:
        layout = _by_warpgroups(columns, count, device.multiprocessors, inputs % TILE <= HALF_FULL, whole_slopes)
    else:
        layout = _by_warps(columns, count)
    if layout.parts > device.multiprocessors:
        # Shared memory holds the next tile of every warp besides the examples.
        return KernelLayout(columns, 1, 8 if columns <= 14 else 4, device.multiprocessors, 1, False, 1, streamed=True)
    return layout


def _by_warps(columns: int, count: int) -> KernelLayout:
    """Of `count` tiles, each warp multiplying by itself."""
    if columns <= 7:
        # Two tiles per warp share what they read; at most 8 warps, so that a lane may have 255 registers.
        tiles, most = 2, 8
    else:
        tiles, most = 1, 12 if columns <= 14 else 8
    parts = -(-count // (tiles * most))
    warps = -(-count // (tiles * parts))
    return KernelLayout(columns, tiles, warps, parts, max(1, most // warps), True, tiles)


def _by_warpgroups(columns: int, count: int, multiprocessors: int, half: bool, whole_slopes: bool) -> KernelLayout:
    """Of `count` tiles, four warps multiplying together: as many tiles per warp as registers and shared memory hold.

    From 17 blocks of columns on, two tiles do not quite fit and some of them spills; streaming would be slower still.
    Slopes of 0 and ±1 are multiplied as bytes; with few columns a multiplication per weight then gives the scores
    again, which costs less than keeping them.
    """
    most = 4 if columns <= 7 else 2 if columns <= 16 or (columns <= 19 and count > 8 * multiprocessors) else 1
    tiles = 1
    while tiles < most and count > 4 * tiles:
        tiles *= 2
    if columns > 4 and 4 < count <= 4 * tiles:
        # Parked tiles leave no room for a second block: rather eight warps of fewer tiles.
        tiles //= 2
    warps = 4 if count <= 4 * tiles else 8
    parts = -(-count // (tiles * warps))
    keeps = columns > 7 or not whole_slopes
    blocks = 8 // warps
    if tiles == 1:
        resident = 13  # blocks of columns in registers
    elif tiles == 2 and warps == 4 and not keeps:
        resident, blocks = 3, 3  # a third block hides more than parked columns cost
    elif tiles == 2:
        resident = 7 if columns <= 7 else 5 if columns <= 13 else max(6, columns - 8)
    else:
        resident = 4 if columns <= 4 else 3
    parked = max(0, columns - resident)
    return KernelLayout(columns, tiles, warps, parts, blocks, keeps, tiles, warpgroup=True, parked=parked, half=half)
