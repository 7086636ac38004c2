"""The models that are compared, each with fixed settings: nothing is tuned on the test rows.

Families "paper-network" and "forest-grid" are searches of the paper: it reports the best median of a family, chosen by
the test errors themselves, and so does the summary for these two (as "best of").

Networks are those of pareto, appendix C.3: three hidden layers of one width, dense or with s inputs per neuron.
scikit-learn's `MLPClassifier` trains them (log loss, Adam, learning rate 1e-3, batches of 256, 100 epochs); the weights
start as C.1 says: uniform within one over the square root of the fan-in, a sparse first layer with s ones per row. The
paper names SGD in C.1 alone; with plain SGD at this rate the networks hardly leave their start (docs/errata.md).
"""

from __future__ import annotations

import logging
import re
import warnings
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewfire
from fewfire._errors import invalid
from fewfire._optional import is_installed
from fewfire._random import Stream
from fewfire._validate import check_integer, did_you_mean
from fewfire.networks import init

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fewfire._types import AnyArray

WIDTHS = (100, 300, 1000, 3000, 10_000, 30_000)  # the paper's widths
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
        """The model as part of a measurement's spec."""
        settings = dict(self.settings)
        if self.package == "fewfire":  # its defaults may change between releases
            defaults = self.build(0, **settings).get_params()
            settings |= {name: repr(value) for name, value in defaults.items() if name != "random_state"}
        return {"name": self.name, "settings": settings, self.package: version(self.package)}


@dataclass(eq=False, repr=False)
class PaperNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained as pareto, C.3, trains it.

    Parameters
    ----------
    width : int
        Of every hidden layer.
    sparsity : int or None
        Non-zero weights of each first-layer row; None is dense.
    solver : "adam" or "sgd"
    learning_rate : float
    epochs : int
    random_state : int
    """

    width: int = 100
    sparsity: int | None = 2
    solver: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 1e-3
    epochs: int = 100
    random_state: int = 0

    def fit(self, X: AnyArray, y: AnyArray) -> PaperNetwork:
        """Train on X (rows, features), already standardised, and classes y (rows,)."""
        X = np.asarray(X, dtype=np.float32)
        network = MLPClassifier(
            (check_integer("width", self.width, 1),) * 3,
            solver=self.solver,
            alpha=0.0,
            batch_size=min(256, len(X)),
            momentum=0.0,
            learning_rate_init=self.learning_rate,
            max_iter=1,
            tol=0.0,
            n_iter_no_change=self.epochs + 1,
            warm_start=True,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the stop
            network.fit(X, y)  # makes the arrays, which are overwritten
            self._start(network)
            self.network_ = network.set_params(max_iter=self.epochs).fit(X, y)
        self.classes_ = network.classes_
        return self

    def predict(self, X: AnyArray) -> AnyArray:
        """The classes of X (rows, features), shape (rows,)."""
        classes: AnyArray = self.network_.predict(np.asarray(X, dtype=np.float32))
        return classes

    def _start(self, network: Any) -> None:
        """Write the initial weights; scikit-learn keeps them as (fan-in, fan-out)."""
        stream = Stream(self.random_state, "paper network")
        for layer, (weights, biases) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
            inputs, width = weights.shape
            sparse = layer == 0 and self.sparsity is not None
            start = init.sparse(min(int(self.sparsity or inputs), inputs)) if sparse else init.dense()
            drawn = start(inputs, width, stream.child(f"layer{layer}"))
            weights[:], biases[:] = drawn.hidden.T, drawn.bias


def find_models(names: Sequence[str]) -> list[TabularModel]:
    """The models of these names, families written out, each once."""
    found = {model.name: model for name in names for model in _expand(name)}
    return list(found.values())


def _expand(name: str) -> list[TabularModel]:
    if name in MODELS:
        return [MODELS[name]]
    grid = {f"forest-{'-'.join(map(str, row))}": dict(zip(GRID, row, strict=True)) for row in product(*GRID.values())}
    if name == "forest-grid" or name in grid:
        chosen = {name: grid[name]} if name in grid else grid
        return [TabularModel(key, _forest, settings, family="forest-grid") for key, settings in chosen.items()]
    if name == "paper-network":
        return [_paper_network(kind, width) for kind in ("sparse", "dense") for width in WIDTHS]
    if found := re.fullmatch(r"(sparse|dense)-([1-9]\d*)", name):
        return [_paper_network(found[1], int(found[2]))]
    choices = [*MODELS, "forest-grid", "paper-network"]
    rule = f"must be among {', '.join(choices)}, or sparse-WIDTH and dense-WIDTH, the paper's networks"
    raise invalid("models", rule, name, did_you_mean(name, choices))


def _forest(trial: int, **settings: Any) -> Any:
    return RandomForestClassifier(**settings, n_jobs=1, random_state=trial)


def _catboost(trial: int, **settings: Any) -> Any:
    quiet = {"verbose": False, "allow_writing_files": False}
    return import_module("catboost").CatBoostClassifier(**settings, **quiet, random_seed=trial, thread_count=1)


def _pytabkit(name: str, trial: int) -> Any:
    made = getattr(import_module("pytabkit"), name)(random_state=trial, n_threads=1)  # on a GPU where torch finds one
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)  # its import lowers the level
    return made


def _paper_network(kind: str, width: int) -> TabularModel:
    def build(trial: int, **settings: Any) -> Any:
        return PaperNetwork(**settings, random_state=trial)

    settings = {"width": width, "sparsity": 2 if kind == "sparse" else None}
    return TabularModel(f"{kind}-{width}", build, settings, family="paper-network", standardised=True)


MODELS = {
    "fewfire": TabularModel("fewfire", lambda trial: fewfire.TabularClassifier(random_state=trial), {}, "fewfire"),
    "forest": TabularModel("forest", _forest, {"n_estimators": 300, "min_samples_leaf": 3}),
    "xgboost": TabularModel(
        "xgboost", lambda trial: import_module("xgboost").XGBClassifier(n_jobs=1, random_state=trial), {}, "xgboost"
    ),
    "catboost": TabularModel("catboost", _catboost, {"iterations": 500}, "catboost"),
    "mlp": TabularModel("mlp", lambda trial: make_pipeline(StandardScaler(), MLPClassifier(random_state=trial)), {}),
    "realmlp": TabularModel("realmlp", partial(_pytabkit, "RealMLP_TD_Classifier"), {}, "pytabkit"),
    "tabm": TabularModel("tabm", partial(_pytabkit, "TabM_D_Classifier"), {}, "pytabkit"),
}
"""Models by name: fewfire's default estimator, and others at their defaults or at the settings given here."""
