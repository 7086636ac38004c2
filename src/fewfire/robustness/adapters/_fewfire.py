"""Networks and tabular estimators of fewfire: `TwoLayer` by its weights, `SparseInit*` by their predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.networks import TwoLayer
from fewfire.robustness._adapter import ModelAdapter, register_adapter
from fewfire.robustness._black_box import black_box
from fewfire.robustness._scores import TwoLayerScores

if TYPE_CHECKING:
    from typing import Any

# Ranks and piecewise linear encodings of the columns have kinks by the hundred, and inputs are rounded to float32:
# slopes over a share of ρ lead further than the gradient at a point would.
register_adapter("fewfire.SparseInitClassifier", "fewfire.SparseInitRegressor")(black_box)


@register_adapter(TwoLayer)
def two_layer(model: Any, X: object, y: object) -> ModelAdapter:
    """Its value; labels ±1 make it a classifier by sign, other labels a regressor."""
    signs = bool(np.all(np.isin(np.asarray(y), (-1, 1))))
    return ModelAdapter(TwoLayerScores((model.astype(np.float64),)), np.array([-1, 1]) if signs else None)
