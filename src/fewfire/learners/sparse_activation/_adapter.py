"""How attacks and certificates see the estimators of H(n, s, k): their network, one score per output."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewfire.learners.sparse_activation._base import SparseActivationBase
from fewfire.robustness import ModelAdapter, TwoLayerScores, register_adapter


@register_adapter(SparseActivationBase, described="SparseActivationClassifier, SparseActivationRegressor")
def adapt(model: Any, X: object, y: object) -> ModelAdapter:
    """The network on columns of real numbers."""
    check_is_fitted(model)
    network = model.network_
    columns = network.output.reshape(network.width, -1).T
    offsets = np.broadcast_to(network.offset, len(columns))
    heads = (
        network.with_parameters(output=column, offset=float(offset))
        for column, offset in zip(columns, offsets, strict=True)
    )
    return ModelAdapter(TwoLayerScores(tuple(heads)), getattr(model, "classes_", None))
