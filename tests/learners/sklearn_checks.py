"""scikit-learn's checks of estimators that draw rows, and what their weights mean all the same.

scikit-learn checks that a row of weight 2 equals two rows to seven digits. That holds where the fit is a function of the
weighted rows, solved in float64. It cannot hold where folds, validation rows or minibatches are drawn by row: two rows
are drawn twice, one row of weight 2 once. Nor can it where training sums in float32, in the order of the rows. Such
estimators leave the check out, each family with its reason, and `check_weights_count` asserts what does hold.
"""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils._testing import set_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

DENSE = "check_sample_weight_equivalence_on_dense_data"
SPARSE = "check_sample_weight_equivalence_on_sparse_data"


def checks_that_hold(estimators, left_out):
    """`parametrize_with_checks` without the checks that `left_out` names for an estimator, as a dict to the reason."""
    every = parametrize_with_checks(estimators, expected_failed_checks=left_out)
    names, cases = every.args
    return pytest.mark.parametrize(names, [case for case in cases if not getattr(case, "marks", ())], **every.kwargs)


def check_weights_count(model, fourfold=None, rows=600):
    """Weight 0 leaves a row out, the unit of weights has no effect, and a row of weight 3 counts as three rows do.

    Half of the rows have the label x₀, the other half x₁. With weights 3 and 1 the prediction follows x₀ where the
    two differ, with three copies and one it does too, and with equal weights it follows neither. Its mean along x₀ there
    comes from half of the rows, whose labels have deviation √3/2: of 600 rows, a standard error of 0.05. For a regressor
    the weights change that mean by 1/2. What weights and copies give may differ by 30% of what they change, which is three
    standard errors: the draw of folds or minibatches changes no more than another draw of the rows would.

    Parameters
    ----------
    model : estimator
    fourfold : estimator, optional
        The one that equals it when all weights are four times as large; the model itself unless its penalty is absolute.
    rows : int
    """
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(rows, 6))
    first = np.arange(rows) % 2 == 0
    y = np.where(first, X[:, 0], X[:, 1])
    weights = np.where(first, 3, 1)
    new = rng.choice([-1.0, 1.0], size=(1000, 6))
    new = new[new[:, 0] != new[:, 1]]

    def values(X, y, weights=None, model=model):
        fitted = clone(model)
        set_random_state(fitted)
        fitted.fit(X, y, sample_weight=weights)
        return fitted.decision_function(new) if is_classifier(model) else fitted.predict(new)

    weighted, copied, plain = values(X, y, weights), values(X.repeat(weights, 0), y.repeat(weights)), values(X, y)
    in_other_units = values(X, y, 4 * weights, model if fourfold is None else fourfold)
    np.testing.assert_allclose(in_other_units, weighted, rtol=1e-9, atol=1e-9)  # a power of two: nearly always equal
    some = np.arange(rows) % 5 > 0
    np.testing.assert_array_equal(values(X, y, weights * some), values(X[some], y[some], weights[some]))
    by_weights, by_copies, by_neither = (float(np.mean(found * new[:, 0])) for found in (weighted, copied, plain))
    change = min(by_weights, by_copies) - by_neither
    assert min(by_weights, by_copies) > 0 and abs(by_neither) < change / 2
    assert abs(by_weights - by_copies) <= 0.3 * change
