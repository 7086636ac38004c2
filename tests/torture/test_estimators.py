"""Hostile calls of the estimators: each learns and predicts finite numbers on its table, or refuses and changes nothing."""

import warnings

import numpy as np
import pytest

from fewfire import FewfireError
from fewfire.learners import (
    LowDegreeClassifier,
    LowDegreeRegressor,
    ParityNetClassifier,
    RobustClassifier,
    RobustRegressor,
    SparseActivationClassifier,
    SparseActivationRegressor,
)
from fewfire.learners.baselines import (
    ConjugateKernel,
    ExhaustiveParity,
    GaussianElimination,
    MeetInTheMiddleParity,
    RandomFeatures,
    TangentKernel,
    WalshParity,
)
from fewfire.tabular import SGD, AdamW, TabularClassifier, TabularRegressor

NETWORKS = {"hidden": (8, 4), "members": 1, "scaling": "rank", "gains": "mild", "optimiser": AdamW(0.02, epochs=3)}
SMALL = {
    LowDegreeClassifier: {"n_jobs": 1},
    LowDegreeRegressor: {"n_jobs": 1},
    ParityNetClassifier: {"width": 10, "max_steps": 30},
    RobustClassifier: {"width": 20, "iterations": 3},
    RobustRegressor: {"width": 20, "iterations": 3},
    SparseActivationClassifier: {"width": 8, "steps": 5},
    SparseActivationRegressor: {"width": 8, "steps": 5},
    ConjugateKernel: {},
    TangentKernel: {},
    RandomFeatures: {"width": 20},
    ExhaustiveParity: {"n_jobs": 1},
    MeetInTheMiddleParity: {"k": 2},
    WalshParity: {"n_jobs": 1},
    GaussianElimination: {},
    TabularClassifier: {**NETWORKS, "trees": False},
    TabularRegressor: {**NETWORKS, "trees": False},
}

VALUES = [None, True, 0, -1, 1, 2, 3, 7, 0.0, 0.5, 1.0, -2.5, 1e-300, 1e300, float("inf"), float("nan"), "", "auto", "sgd", "hinge",
          "square", "logistic", "absolute", "huber", "l2", "linf", "slice", "projected", "theorem", "median", "estimation", "gram",
          "cg", "dense", "sparse", "pgd", "none", "standard", "piecewise_linear", "periodic", "strong", "balanced", AdamW(1e6, epochs=2),
          SGD(0.1, epochs=2), [], [0, 1], (0.0, 1.0), (3,), {}, {0: 2.0}, object(), np.float32(2), np.int8(3), np.zeros(3)]  # fmt: skip


def table(draw, rows, columns):
    """Binary, continuous, constant, huge, tiny, broken or odd."""
    signs = np.where(draw.random((rows, columns)) < 0.5, 1, -1)
    scale = 10.0 ** draw.integers(-320, 309) if draw.integers(2) else 1.0
    with np.errstate(all="ignore"):
        kinds = [
            lambda: signs,
            lambda: signs.astype(np.int8),
            lambda: signs == 1,
            lambda: signs * scale,
            lambda: np.full((rows, columns), scale),
            lambda: draw.normal(size=(rows, columns)) * scale,
            lambda: np.where(draw.random((rows, columns)) < 0.1, np.nan, signs),
            lambda: np.where(draw.random((rows, columns)) < 0.1, np.inf, signs * scale),
            lambda: np.zeros((rows, columns)),
            lambda: np.array(["a", "b"])[(signs + 1) // 2],
            lambda: np.array(["a", 1.0], dtype=object)[(signs + 1) // 2],
            lambda: signs.astype(object),
            lambda: signs.tolist(),
            lambda: signs.astype(np.float16),
            lambda: (signs + 1).astype(np.uint64) * (2**63),
            lambda: signs * 1j,
            lambda: signs[:0],
            lambda: signs[:, :0],
            lambda: signs.ravel(),
            lambda: signs[None],
            lambda: None,
            lambda: np.ma.masked_array(signs, signs > 0),
            lambda: np.asfortranarray(signs)[::-1],
            lambda: signs.astype("M8[D]"),
        ]
        return kinds[min(draw.integers(len(kinds)), draw.integers(len(kinds)))]()


def labels(draw, rows):
    coins = draw.integers(0, 2, rows)
    scale = 10.0 ** draw.integers(-320, 309) if draw.integers(2) else 1.0
    with np.errstate(all="ignore"):
        kinds = [
            lambda: coins,
            lambda: 2 * coins - 1,
            lambda: np.array(["no", "yes"])[coins],
            lambda: coins * scale,
            lambda: draw.normal(size=rows) * scale,
            lambda: np.zeros(rows),
            lambda: draw.integers(0, 4, rows),
            lambda: np.where(coins == 1, np.nan, 1.0),
            lambda: np.where(coins == 1, np.inf, 1.0),
            lambda: coins[:-1],
            lambda: coins[:, None],
            lambda: coins.astype(object),
            lambda: np.array([None, "x"])[coins],
            lambda: coins.astype(bool),
            lambda: coins + 0.5j,
            lambda: None,
            lambda: coins.tolist(),
        ]
        return kinds[min(draw.integers(len(kinds)), draw.integers(len(kinds)))]()


def hostile(draw, learner):
    """An estimator with a few parameters replaced, never by such that take long or fill the memory."""
    options = dict(SMALL[learner])
    names = [name for name in learner().get_params() if name != "verbose"]
    for _ in range(int(draw.integers(0, 4))):
        options[names[draw.integers(len(names))]] = VALUES[draw.integers(len(VALUES))]
    return learner(**options), options


@pytest.mark.least(
    {"hostile estimator calls": 50 * len(SMALL), **{f"hostile fits of {learner.__name__}": 3 for learner in SMALL}}
)
def test_hostile_calls(rounds, draw, tally):
    for _ in rounds:
        for learner in SMALL:
            model, options = hostile(draw, learner)
            rows, columns = int(draw.integers(1, 30)), int(draw.integers(1, 7))
            X, y = table(draw, rows, columns), labels(draw, rows)
            tally("hostile estimator calls")
            before = dict(vars(model))
            call = f"{learner.__name__}({options}) on {X!r}, {y!r}"
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    model.fit(X, y)
                except (ValueError, FewfireError):
                    assert vars(model) == before or all(vars(model)[key] is before[key] for key in before), call
                    continue
                except Exception as error:
                    raise AssertionError(call) from error
                tally(f"hostile fits of {learner.__name__}")
                check_predictions(draw, model, X, rows, columns, call)


def check_predictions(draw, model, X, rows, columns, call):
    for data in (X, table(draw, rows, columns)):
        try:
            predicted = model.predict(data)
        except (ValueError, TypeError, FewfireError):
            assert data is not X, call
            continue
        except Exception as error:
            raise AssertionError(call) from error
        if data is X:  # on others the polynomial or the network may be beyond the floats
            assert predicted.dtype.kind != "f" or np.isfinite(predicted).all(), call
