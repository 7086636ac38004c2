"""Networks of one layout as rows of one matrix of parameters on a device, and the epochs they are to take.

Parameters are in the order of `Layout`, one row per network. The table of an encoding is on the device once, however
many networks see it: rows are gathered by number and multiplied by the network's gains. A network's batches are those
that `CpuTrainer` would take.

What an epoch needs is written to an `EpochBlock`, several epochs at once, and what it brings is read from there. Who
takes the steps is another matter: PyTorch's products (_torch_steps.py), or a kernel (cuda).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.tabular._update_rules import rule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fewfire._types import AnyArray, FloatArray, IdArray
    from fewfire.tabular._training import TrainedNetwork, TrainingRows

ALIGNED = 4  # numbers; rows of parameters begin at multiples of it, as products like it


@dataclass
class EpochBlock:
    """Epochs of a stack on the device: what they need, and what they bring.

    rows (epochs, steps, networks, batch) are numbers in the table, int32; factors (epochs, steps, kinds, networks, 1);
    newest (epochs, networks, 1), the share of the newest weights in their mean. Then sums of losses (epochs, networks),
    outputs at the rows held out (epochs, networks, rows, outputs) and what gave them (epochs, networks, row length).
    """

    rows: Any
    factors: Any
    newest: Any
    losses: Any
    judged: Any
    weights: Any


class LayoutStack:
    """Networks of one layout, loss and optimiser on one device.

    Parameters
    ----------
    torch : module
    device : str
    networks : list of TrainedNetwork
    parts, held : lists of TrainingRows
        What each trains on and is judged by; `held` may be empty.
    """

    def __init__(
        self,
        torch: Any,
        device: str,
        networks: Sequence[TrainedNetwork],
        parts: Sequence[TrainingRows],
        held: Sequence[TrainingRows],
    ) -> None:
        self.torch, self.device = torch, device
        self.layout, self.loss, optimiser = networks[0].layout, networks[0].loss, networks[0].optimiser
        flats = np.stack([network.flat for network in networks])
        self.parameters = self.placed(np.pad(flats, ((0, 0), (0, -self.layout.size % ALIGNED))))
        self.mean = torch.zeros_like(self.parameters)
        self.rule = rule_of(optimiser.get_params(), self.parameters)
        self.shrinks = float(optimiser.learning_rate) * np.array([network.descent.decay for network in networks])
        seen = [*parts, *held]
        table, starts = _joined([part.X for part in seen])
        targets, self.places = _joined([part.target for part in parts])
        weights, self.weighed = _joined([part.weight for part in parts])
        self.table, self.starts = self.placed(table), starts[: len(parts)]
        self.targets, self.weights = self.placed(targets), self.placed(weights)
        self.gains = self.placed(np.stack([part.factors() for part in parts]))[:, None]
        self.empty = np.array([len(part.X) for part in parts])
        self.judged, self.judged_gains = self._place_held(held, starts[len(parts) :])

    def placed(self, array: AnyArray) -> Any:
        """An array on the device."""
        return self.torch.as_tensor(array, device=self.device)

    def _place_held(self, held: Sequence[TrainingRows], starts: IdArray) -> tuple[Any, Any]:
        """Numbers (networks, rows) of the rows held out, the empty one behind those of short parts, and gains."""
        longest = max(map(len, held), default=0)
        rows = np.zeros((len(self.parameters), longest), np.int32)
        gains = np.ones((len(self.parameters), 1, self.layout.inputs), np.float32)
        for number, (part, start) in enumerate(zip(held, starts, strict=True)):
            rows[number] = start + len(part.X)
            rows[number, : len(part)] = start + part.places()
            gains[number, 0] = part.factors()
        return self.placed(rows), self.placed(gains)

    def __len__(self) -> int:
        return len(self.parameters)

    def select(self, networks: list[int]) -> None:
        """Go on with these networks alone."""
        self.rule.select(networks)
        for name in ("shrinks", "empty", "starts", "places", "weighed"):
            setattr(self, name, getattr(self, name)[networks])
        for name in ("parameters", "mean", "gains", "judged", "judged_gains"):
            setattr(self, name, getattr(self, name)[networks].contiguous())

    def prepare(self, epochs: int, steps: int, batch: int) -> None:
        """Make room for so many epochs at once, of so many steps and rows; in these nothing moves yet."""
        new, outputs = self.parameters.new_zeros, self.layout.outputs
        count, integer = len(self), self.torch.int32
        still = self.factors(np.zeros((steps, count), np.int64))
        self.block = EpochBlock(
            new((epochs, steps, count, batch), dtype=integer),
            self.placed(np.broadcast_to(still, (epochs, *still.shape)).copy()),
            new((epochs, count, 1)),
            new((epochs, count)),
            new((epochs, *self.judged.shape, outputs)),
            new((epochs if self.judged.shape[1] else 0, *self.parameters.shape)),
        )

    def factors(self, present: NDArray[np.int64], paces: AnyArray | float = 1.0) -> FloatArray:
        """What steps multiply by (steps, kinds, networks, 1), given how many rows each network has in each.

        `paces` (networks,) are shares of the learning rate.
        """
        moves = present > 0
        kinds = [1 / np.maximum(present, 1), 1 - self.shrinks * paces * moves, *self.rule.factors(moves, paces)]
        return np.stack(kinds, axis=1).astype(np.float32)[..., None]


def _joined(arrays: list[AnyArray]) -> tuple[AnyArray, IdArray]:
    """The distinct arrays one below the other, a row of zeros after each; where each array begins."""
    starts: dict[int, int] = {}
    distinct, rows = [], 0
    for array in arrays:
        if id(array) not in starts:
            starts[id(array)] = rows
            distinct += [array, np.zeros((1, *array.shape[1:]), array.dtype)]
            rows += len(array) + 1
    return np.concatenate(distinct), np.array([starts[id(array)] for array in arrays], np.int64)
