"""`TwoLayer`, by its weights; fewfire's estimators bring adapters of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.networks import TwoLayer
from fewfire.robustness._adapter import ModelAdapter, register_adapter
from fewfire.robustness._formula import Layers

if TYPE_CHECKING:
    from typing import Any


@register_adapter(TwoLayer)
def two_layer(model: Any, X: object, y: object) -> ModelAdapter:
    """Its value; labels ±1 make it a classifier by sign, others a regressor. Several outputs are scores of classes."""
    formula = Layers.of(model)
    heads = len(formula.biases[-1])
    if heads > 1:
        return ModelAdapter(formula, np.arange(heads))
    signs = bool(np.all(np.isin(np.asarray(y), (-1, 1))))
    return ModelAdapter(formula, np.array([-1, 1]) if signs else None)
