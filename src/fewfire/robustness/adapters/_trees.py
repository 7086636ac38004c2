"""Trees and ensembles of trees are refused, with the reason: an attack that follows slopes would flatter them.

Their scores are constant between the thresholds of the trees, so that every slope is 0 and a search by gradients finds
nothing, whether or not there is something to be found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fewfire._errors import invalid
from fewfire.robustness._adapter import register_adapter

if TYPE_CHECKING:
    from fewfire.robustness._adapter import ModelAdapter

_FORESTS: Final = ("AdaBoost", "ExtraTrees", "GradientBoosting", "HistGradientBoosting", "RandomForest")
_TREES: Final = ("DecisionTree", "ExtraTree")
_OTHERS: Final = ("catboost.CatBoost", "lightgbm.LGBM", "xgboost.XGB", "xgboost.XGBRF")
_KINDS: Final = (*(f"sklearn.ensemble.{name}" for name in _FORESTS), *(f"sklearn.tree.{name}" for name in _TREES))


@register_adapter(
    *(f"{kind}{end}" for kind in (*_KINDS, *_OTHERS) for end in ("Classifier", "Regressor")), described=None
)
def trees(model: Any, X: object, y: object) -> ModelAdapter:
    """Refused."""
    name = type(model).__name__
    rule = "must have scores with slopes to be attacked or certified"
    got = f"a {name}, whose scores are constant between the thresholds of its trees"
    remedy = (
        "use a search over leaves made for trees; a random search that may miss much: "
        f"register_adapter({name})(black_box) and method='square'"
    )
    raise invalid("model", rule, got, remedy)
