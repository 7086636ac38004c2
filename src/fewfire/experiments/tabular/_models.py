"""The models that are measured side by side, each with fixed settings: nothing is tuned on the test rows.

Families "paper-network" and "forest-grid" are searches of the paper: it reports the best median of a family, chosen by
the test errors themselves, and so does the summary for these two (as "best of").
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import product
from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._optional import is_installed
from fewfire._validate import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

WIDTHS = (100, 300, 1000, 3000, 10_000, 30_000)
"""The paper's widths."""

GRID = {"max_depth": (None, 2, 3, 4, 10), "max_features": (1, 2, 3, 4, "sqrt", None), "n_estimators": (10, 100, 1000)}
"""The paper's grid of forests; it prints −1 for an unlimited depth, which scikit-learn writes as None."""


@dataclass(frozen=True)
class TabularModel:
    """A model with its settings.

    Parameters
    ----------
    name : str
    build : callable
        `build(trial, **settings)` gives an estimator with `fit` and `predict`.
    settings : mapping
        Part of what a measurement is keyed by.
    package : str
        What must be installed; its version is part of the key too.
    family : str
        "" or the search that the model is part of.
    standardised : bool
        Whether the whole table is standardised first, as the paper does for its networks. The others see raw columns.
    """

    name: str
    build: Callable[..., Any]
    settings: Mapping[str, Any]
    package: str = "scikit-learn"
    family: str = ""
    standardised: bool = False

    def missing(self) -> str:
        """Why the model cannot be measured here; "" where it can."""
        if self.package not in ("fewfire", "scikit-learn") and not is_installed(self.package):
            return f"the package {self.package!r} is not installed (pip install --no-deps {self.package})"
        return ""

    def key(self) -> dict[str, Any]:
        """What a measurement's spec says about the model."""
        settings = dict(self.settings)
        if self.package == "fewfire":  # its defaults may change between releases
            defaults = self.build(0, **settings).get_params()
            settings |= {name: repr(value) for name, value in defaults.items() if name != "random_state"}
        return {"name": self.name, "settings": settings, self.package: version(self.package)}


def find_models(names: Sequence[str]) -> list[TabularModel]:
    """The models of these names, families written out, each once."""
    found = {model.name: model for name in names for model in _expand(name)}
    return list(found.values())


def _expand(name: str) -> list[TabularModel]:
    if name in MODELS:
        return [MODELS[name]]
    grid = [_forest_of_grid(dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())]
    if alone := [model for model in grid if name in ("forest-grid", model.name)]:
        return alone
    if name == "paper-network":
        return [_paper_network(kind, width) for kind in ("sparse", "dense") for width in WIDTHS]
    if found := re.fullmatch(r"(sparse|dense)-([1-9]\d*)", name):
        return [_paper_network(found[1], int(found[2]))]
    choices = [*MODELS, "forest-grid", "paper-network"]
    rule = f"must be among {', '.join(choices)}, or sparse-WIDTH and dense-WIDTH, the paper's networks"
    raise invalid("models", rule, name, did_you_mean(name, choices))


def _fewfire(trial: int) -> Any:
    import fewfire

    return fewfire.SparseInitClassifier(random_state=trial)


def _forest(trial: int, **settings: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**settings, n_jobs=1, random_state=trial)


def _xgboost(trial: int) -> Any:
    return import_module("xgboost").XGBClassifier(n_jobs=1, random_state=trial)


def _catboost(trial: int, **settings: Any) -> Any:
    quiet = {"verbose": False, "allow_writing_files": False}
    return import_module("catboost").CatBoostClassifier(**settings, **quiet, random_seed=trial, thread_count=1)


def _mlp(trial: int) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), MLPClassifier(random_state=trial))


def _pytabkit(name: str, trial: int) -> Any:
    made = getattr(import_module("pytabkit"), name)(random_state=trial, n_threads=1)  # on a GPU where torch finds one
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)  # set to talkative when it was imported
    return made


def _realmlp(trial: int) -> Any:
    return _pytabkit("RealMLP_TD_Classifier", trial)


def _tabm(trial: int) -> Any:
    return _pytabkit("TabM_D_Classifier", trial)


def _network(trial: int, **settings: Any) -> Any:
    from fewfire.experiments.tabular._paper_network import PaperNetwork

    return PaperNetwork(**settings, random_state=trial)


def _paper_network(kind: str, width: int) -> TabularModel:
    settings = {"width": width, "sparsity": 2 if kind == "sparse" else None}
    return TabularModel(f"{kind}-{width}", _network, settings, family="paper-network", standardised=True)


def _forest_of_grid(settings: dict[str, Any]) -> TabularModel:
    name = "forest-" + "-".join(str(value) for value in settings.values())
    return TabularModel(name, _forest, settings, family="forest-grid")


MODELS = {
    "fewfire": TabularModel("fewfire", _fewfire, {}, "fewfire"),
    "forest": TabularModel("forest", _forest, {"n_estimators": 300, "min_samples_leaf": 3}),
    "xgboost": TabularModel("xgboost", _xgboost, {}, "xgboost"),
    "catboost": TabularModel("catboost", _catboost, {"iterations": 500}, "catboost"),
    "mlp": TabularModel("mlp", _mlp, {}),
    "realmlp": TabularModel("realmlp", _realmlp, {}, "pytabkit"),
    "tabm": TabularModel("tabm", _tabm, {}, "pytabkit"),
}
"""Models by name: fewfire's default estimator, and its rivals at their defaults or at the settings given here."""
