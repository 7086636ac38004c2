"""Fits that fail change nothing, and data at the edge of what can be learned gets an answer or an error that names it."""

import sys
from pathlib import Path

import numpy as np
import pytest

import fewfire
from fewfire import InvalidArgument
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
from fewfire.tabular import TabularRegressor

LEARNERS = {
    "low degree classifier": lambda: LowDegreeClassifier(n_jobs=1, max_degree=2, random_state=0),
    "low degree regressor": lambda: LowDegreeRegressor(n_jobs=1, max_degree=2, random_state=0),
    "parity net": lambda: ParityNetClassifier(width=10, max_steps=20, random_state=0),
    "robust classifier": lambda: RobustClassifier(20, iterations=2, random_state=0),
    "robust regressor": lambda: RobustRegressor(20, iterations=2, random_state=0),
    "sparse activation classifier": lambda: SparseActivationClassifier(8, 2, steps=5, random_state=0),
    "sparse activation regressor": lambda: SparseActivationRegressor(8, 2, steps=5, random_state=0),
    "random features": lambda: RandomFeatures(20, random_state=0),
    "random features, hinge": lambda: RandomFeatures(20, loss="hinge", random_state=0),
    "conjugate kernel": lambda: ConjugateKernel(),
    "tangent kernel, hinge": lambda: TangentKernel(loss="hinge"),
    "gaussian elimination": lambda: GaussianElimination(),
    "exhaustive parity": lambda: ExhaustiveParity(2, n_jobs=1),
    "meet in the middle": lambda: MeetInTheMiddleParity(2, random_state=0),
    "walsh parity": lambda: WalshParity(n_jobs=1),
}


def signs(rows, columns, seed=0):
    X = np.where(np.random.default_rng(seed).random((rows, columns)) < 0.5, 1, -1)
    X[:2] = [[1] * columns, [-1] * columns]  # every column varies
    return X, X[:, 0] * X[:, 1]


PACKAGE = str(Path(fewfire.__file__).parent)


class InterruptAt:
    """Ctrl-C at the n-th call of a function of this package within the block."""

    def __init__(self, calls):
        self.left = calls

    def __enter__(self):
        sys.setprofile(self._count)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)

    def _count(self, frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.filterwarnings("ignore:training was interrupted")  # robust training keeps what it has reached
def test_an_interrupted_fit_changes_nothing(name):
    """Interrupted at every call, one fit after the other, while it learns another table."""
    model, (X, y), (other, labels) = LEARNERS[name](), signs(30, 5), signs(40, 7, seed=1)
    model.fit(X, y)
    before, predicted = dict(vars(model)), model.predict(X)
    calls = 1
    while True:
        ended = False
        try:
            with InterruptAt(calls):
                model.fit(other, labels)
                ended = True
        except KeyboardInterrupt:
            assert vars(model).keys() == before.keys() and all(vars(model)[key] is before[key] for key in before)
        if ended or vars(model).get("n_features_in_") == 7:
            break
        calls += 1 + calls // 10
    assert calls > 3 and model.predict(other).shape == (40,)
    model.fit(X, y)
    assert np.array_equal(model.predict(X), predicted)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_fit_that_fails_leaves_an_unfitted_model_unfitted(name):
    model, (X, y) = LEARNERS[name](), signs(30, 5)
    before = dict(vars(model))
    for bad in (np.full((30, 4), np.nan), np.array([["a"] * 3] * 30), X[:20]):
        with pytest.raises(ValueError):
            model.fit(bad, y)
        assert vars(model) == before


@pytest.mark.parametrize("k", [None, 1, 3])
def test_a_parity_net_on_constant_columns_is_constant(k):
    X, y = np.full((20, 4), 3.0), np.array([1] * 15 + [0] * 5)
    model = ParityNetClassifier(width=10, max_steps=200, k=k, random_state=0).fit(X, y)
    assert model.support_ == () and len(model.active_) == 0 and len(model.lucky_neurons_) == 0
    assert model.predict(X).tolist() == [1] * 20


@pytest.mark.parametrize("learner", [LowDegreeClassifier, LowDegreeRegressor, ParityNetClassifier])
def test_columns_of_text_are_refused_by_name(learner):
    pandas = pytest.importorskip("pandas")
    y = np.array([0, 1] * 10)
    frame = pandas.DataFrame({"size": [1, 2] * 10, "colour": ["red", "blue"] * 10}).astype({"colour": "category"})
    with pytest.raises(InvalidArgument) as caught:
        learner().fit(frame.astype("category"), y)
    assert str(caught.value) == (
        "X must hold numbers; got a str, 'red', in column 'colour'. Remedy: encode its two values as 0 and 1."
    )
    with pytest.raises(ValueError, match="red|X must hold numbers"):
        learner().fit(frame, y)
    model = learner(**({"max_steps": 10} if learner is ParityNetClassifier else {}))
    model.fit(pandas.DataFrame({"size": [1, 2] * 10, "colour": [0, 1] * 10}), y)
    with pytest.raises(ValueError, match="red|X must hold numbers"):
        model.predict(frame.astype("category"))


@pytest.mark.parametrize("learner", [LowDegreeRegressor, RobustRegressor, SparseActivationRegressor])
@pytest.mark.parametrize("size", [1e300, 1e160, 1e-160, 1e-300])
def test_labels_of_any_size_are_learned_alike(learner, size):
    """Powers of two apart, the model is the same to the bit; else up to the rounding of the labels."""
    X, y = signs(40, 4)
    own = {LowDegreeRegressor: {"n_jobs": 1}, RobustRegressor: {"iterations": 20, "width": 50}}
    options = {"random_state": 0} | own.get(learner, {"width": 8, "k": 2, "steps": 20})
    plain = learner(**options).fit(X, 3.0 * y).predict(X)
    scaled = learner(**options).fit(X, size * y).predict(X)
    assert np.isfinite(scaled).all() and np.allclose(scaled / size, plain / 3.0, rtol=1e-3, atol=1e-3)
    with pytest.raises(InvalidArgument) as caught:
        learner(**options).fit(X, 1e306 * y)
    assert str(caught.value) == "y must be at most 1e+300 in magnitude; got 1e+306. Remedy: measure it in other units."


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize("learner", [LowDegreeRegressor, RobustRegressor, SparseActivationRegressor, TabularRegressor])
def test_none_among_numbers_is_a_missing_label(learner, rows):
    """scikit-learn checks before it makes a None NaN: one row of it was learned, and predicted NaN."""
    X, y = signs(30, 5)
    with pytest.raises(InvalidArgument) as caught:
        learner().fit(X[:rows], np.array([None, *y[1:rows]], dtype=object))
    message = "y must hold finite numbers; got a nan at index (0,). Remedy: drop or impute the missing values."
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "name", ["parity net", "random features", "robust classifier", "conjugate kernel", "sparse activation classifier"]
)
def test_classes_of_two_types_are_refused(name):
    X, _ = signs(30, 5)
    with pytest.raises(InvalidArgument) as caught:
        LEARNERS[name]().fit(X, np.array([1, "x"] * 15, dtype=object))
    assert str(caught.value) == "y must hold classes of one type; got a mix of int, str. Remedy: make them texts."
    with pytest.raises(InvalidArgument) as caught:
        LEARNERS[name]().fit(X, np.array(["x", None] * 15))
    assert str(caught.value) == (
        "y must hold classes of one type; got a mix of NoneType, str. "
        "Remedy: leave out the rows without a label, or give them one."
    )


def test_kernels_of_numbers_whose_squares_are_infinite():
    X, y = signs(30, 5)
    with pytest.raises(InvalidArgument, match=r"bias must be a finite number in \[0, 1e\+150\]; got 1e\+300"):
        TangentKernel(bias=1e300).fit(X, y)
    with pytest.raises(InvalidArgument, match=r"X must be less than about 1e\+150 in magnitude; got 1e\+200"):
        ConjugateKernel().fit(1e200 * X, y)
