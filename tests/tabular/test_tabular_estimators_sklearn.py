"""scikit-learn's own checks: small networks with all variants, a network with trees, one trained on whole batches."""

import pytest

from fewfire.tabular import AdamW, TabularClassifier, TabularRegressor
from fewfire.tabular._trees import load_lightgbm
from learners.sklearn_checks import DENSE, SPARSE, check_weights_count, checks_that_hold

WHOLE = {"members": 1, "early_stopping": False, "scaling": "standard", "gains": "none"}
SMALL = {"hidden": (16, 8), "members": 2, "trees": False, "optimiser": AdamW(0.01, epochs=20)}
WITH_TREES = {"hidden": (8,), "members": 1, "scaling": "rank", "gains": "mild", "optimiser": AdamW(0.02, epochs=20)}


def left_out(estimator):
    """Folds and minibatches are drawn by row, as in the bagged and stochastic estimators of scikit-learn itself.

    A network on whole batches draws nothing, but trains in float32, where 60 epochs magnify the order of sums a thousand
    times; test_a_weight_of_two_is_two_rows in test_tabular_estimators.py asserts what float32 allows.
    """
    return dict.fromkeys((DENSE, SPARSE), "folds and minibatches are drawn by row, and training is in float32")


ESTIMATORS = [
    estimator(**parameters)
    for estimator in (TabularClassifier, TabularRegressor)
    for parameters in (
        {**SMALL},
        {**WITH_TREES},
        {**WHOLE, "hidden": (64,), "optimiser": AdamW(0.01, 0.1, batch_size=10**6, epochs=60)},
    )
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@checks_that_hold([TabularClassifier(), TabularRegressor()], left_out)
def test_estimator_checks_of_the_defaults(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.no_cover
@checks_that_hold(ESTIMATORS, left_out)
def test_estimator_checks(estimator, check):
    load_lightgbm()  # where it cannot be, the test is skipped
    check(estimator)


@pytest.mark.parametrize("model", ESTIMATORS, ids=str)
def test_weights_count_where_rows_are_drawn(model):
    check_weights_count(model)
