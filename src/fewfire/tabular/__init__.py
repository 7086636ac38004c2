"""Small tables: wide, sparsely initialised networks as scikit-learn estimators (pareto, sections 4.2 and C.3).

The encodings of numerical columns and the periodic embedding are of use by themselves; `ENCODINGS` names them.
"""

from fewfire.tabular._classifier import SparseInitClassifier
from fewfire.tabular._effects import EffectCurve, Effects
from fewfire.tabular._embeddings import Embedding, EmbeddingLayer, PeriodicEmbedding
from fewfire.tabular._encodings import (
    ENCODINGS,
    ColumnRanks,
    Encoding,
    PiecewiseLinearEncoding,
    RankEncoding,
    StandardScaling,
)
from fewfire.tabular._optimisers import SGD, AdamW
from fewfire.tabular._regressor import SparseInitRegressor

__all__ = [
    "ENCODINGS",
    "SGD",
    "AdamW",
    "ColumnRanks",
    "EffectCurve",
    "Effects",
    "Embedding",
    "EmbeddingLayer",
    "Encoding",
    "PeriodicEmbedding",
    "PiecewiseLinearEncoding",
    "RankEncoding",
    "SparseInitClassifier",
    "SparseInitRegressor",
    "StandardScaling",
]
