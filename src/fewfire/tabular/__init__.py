"""Small tables: ensembles of networks and trees as scikit-learn estimators (pareto, sections 4.2 and C.3).

`ENCODINGS` names the encodings of numerical columns, which are transformers of use by themselves.
"""

from fewfire._dense.network import Embedding
from fewfire._dense.optimisers import SGD, AdamW
from fewfire.tabular._classifier import TabularClassifier
from fewfire.tabular._encodings import ENCODINGS, Encoding
from fewfire.tabular._regressor import TabularRegressor

__all__ = ["ENCODINGS", "SGD", "AdamW", "Embedding", "Encoding", "TabularClassifier", "TabularRegressor"]
