"""How attacks and certificates see a `ParityNetClassifier`: its network, a column's two values joined by a line."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewfire._errors import invalid
from fewfire.learners.parity_net._estimator import ParityNetClassifier
from fewfire.robustness import ModelAdapter, TwoLayerScores, register_adapter


@register_adapter(ParityNetClassifier)
def adapt(model: Any, X: object, y: object) -> ModelAdapter:
    """The network over all columns; constant ones weigh 0. Columns cut at their median are refused."""
    check_is_fitted(model)
    return ModelAdapter(_joined_signs(model), model.classes_)


def _joined_signs(model: Any) -> TwoLayerScores:
    signs, active, net = model._sign_map, model.active_, model.network_.astype(np.float64)
    if not np.isnan(signs.cut[active]).all():
        rule = "must take two-valued columns as they are"
        raise invalid("model", rule, "a ParityNetClassifier with binarize='median'", "a cut has no gradient to follow")
    low, high = (np.asarray(end, dtype=np.float64) for end in (signs.low, signs.high))
    identity = (low == -1) & (high == 1)
    half = np.where(high > low, (high - low) / 2, 1.0)
    scale = np.where(identity, 1.0, -1.0 / half)
    shift = np.where(identity, 0.0, (low + high) / 2 / half)
    if not len(active):  # the one input is the constant +1
        hidden, bias = np.zeros((net.width, len(low))), net.bias + net.hidden[:, 0]
        return TwoLayerScores((net.with_parameters(hidden, bias),))
    hidden = np.zeros((net.width, len(low)))
    hidden[:, active] = net.hidden
    return TwoLayerScores((net.with_parameters(hidden),)).after(scale, np.where(high > low, shift, 0.0))
