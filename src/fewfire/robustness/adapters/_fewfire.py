"""`TwoLayer`, by its weights; fewfire's estimators bring adapters of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_inputs
from fewfire.networks import TwoLayer
from fewfire.robustness._adapter import ModelAdapter, check_score, register_adapter, two_classes
from fewfire.robustness._formula import Layers

if TYPE_CHECKING:
    from typing import Any


@register_adapter(TwoLayer)
def two_layer(model: Any, X: object, y: object) -> ModelAdapter:
    """Its value: labels ±1, or 0 and 1, make it a classifier by sign, others a regressor."""
    formula, labels = Layers.of(model), np.asarray(y)
    heads = len(formula.biases[-1])
    if heads > 1:
        return ModelAdapter(formula, np.arange(heads))
    classes = two_classes(labels)
    if classes is not None and classes[0] == 0:
        table = check_inputs("X", X, formula.inputs, np.dtype(np.float64)).astype(np.float64)
        check_score(formula, table, labels, classes)
    return ModelAdapter(formula, classes)
