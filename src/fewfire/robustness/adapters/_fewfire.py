"""`TwoLayer`, by its weights; fewfire's estimators bring adapters of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.networks import TwoLayer
from fewfire.robustness._adapter import ModelAdapter, register_adapter
from fewfire.robustness._scores import TwoLayerScores

if TYPE_CHECKING:
    from typing import Any


@register_adapter(TwoLayer)
def two_layer(model: Any, X: object, y: object) -> ModelAdapter:
    """Its value; labels ±1 make it a classifier by sign, others a regressor. Several outputs are scores of classes."""
    net = model.astype(np.float64)
    columns = net.output.reshape(net.width, -1).T
    if len(columns) == 1:
        signs = bool(np.all(np.isin(np.asarray(y), (-1, 1))))
        return ModelAdapter(TwoLayerScores((net,)), np.array([-1, 1]) if signs else None)
    offsets = np.broadcast_to(net.offset, len(columns))
    networks = (
        net.with_parameters(output=column, offset=float(offset))
        for column, offset in zip(columns, offsets, strict=True)
    )
    return ModelAdapter(TwoLayerScores(tuple(networks)), np.arange(len(columns)))
