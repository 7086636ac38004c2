"""The errors of the tabular learners when something is wrong, and that nothing is changed by it."""

import datetime
import re
import sys

import numpy as np
import pandas as pd
import pytest

import fewfire as ff
from fewfire import _progress
from fewfire.tabular import SGD, AdamW

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), np.arange(30) % 2
QUICK = {"hidden": (8,), "members": 1, "scaling": "standard", "gains": "none", "trees": False, "random_state": 0}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"hidden": ()},
            "hidden must give the widths of one to three layers; got (). Remedy: pass (1000, 64) for example.",
        ),
        (
            {"hidden": (8, 8, 8, 8)},
            "hidden must give the widths of one to three layers; got (8, 8, 8, 8). Remedy: pass (1000, 64) for example.",
        ),
        (
            {"hidden": None},
            "hidden must give the widths of one to three layers; got None. Remedy: pass (1000, 64) for example.",
        ),
        ({"hidden": (8, 0)}, "hidden[1] must be an integer of at least 1; got 0."),
        ({"sparsity": 0}, "sparsity must be an integer of at least 1; got 0. Remedy: None is a dense start."),
        ({"members": 0}, "members must be an integer of at least 1; got 0."),
        (
            {"scaling": "minmax"},
            "scaling must be one of 'auto', 'standard', 'rank', 'piecewise_linear', 'periodic'; got 'minmax'.",
        ),
        ({"gains": "much"}, "gains must be one of 'auto', 'none', 'mild', 'strong'; got 'much'."),
        ({"device": "gpu"}, "device must be one of 'cpu', 'cuda'; got 'gpu'."),
        (
            {"early_stopping": 0},
            "early_stopping must be an integer of at least 1; got 0. Remedy: pass 'auto', False, True or a number of epochs.",
        ),
        (
            {"n_jobs": 0},
            "n_jobs must be an integer of at least 1 and at most 1024; got 0. Remedy: pass a number of threads, or −1 for all cores.",
        ),
        (
            {"optimiser": "adam"},
            "optimiser must be an AdamW, an SGD or None; got 'adam'. Remedy: pass fewfire.tabular.AdamW(...).",
        ),
        ({"optimiser": AdamW(-1.0)}, "learning_rate must be a finite number in (0, inf); got -1.0."),
        (
            {"optimiser": AdamW(weight_decay=-1)},
            "weight_decay must be a finite number in [0, inf); got -1. Remedy: pass a number or 'auto'.",
        ),
        (
            {"optimiser": AdamW(batch_size=0)},
            "batch_size must be an integer of at least 1; got 0. Remedy: pass a number of rows or 'auto'.",
        ),
        ({"optimiser": AdamW(epochs=0)}, "epochs must be an integer of at least 1; got 0."),
        ({"optimiser": AdamW(betas=(0.9, 1.0))}, "betas[1] must be a finite number in [0, 1); got 1.0."),
        (
            {"optimiser": AdamW(betas=(0.9,))},
            "betas must be two numbers; got (0.9,). Remedy: pass (0.9, 0.999) for example.",
        ),
        ({"optimiser": AdamW(betas=0.9)}, "betas must be two numbers; got 0.9. Remedy: pass (0.9, 0.999) for example."),
        ({"optimiser": SGD(momentum=1.0)}, "momentum must be a finite number in [0, 1); got 1.0."),
        ({"class_weight": "even"}, "class_weight must be a dict, 'balanced' or None; got 'even'."),
        ({"class_weight": np.ones(2)}, "class_weight must be a dict, 'balanced' or None; got array([1., 1.])."),
        (
            {"early_stopping": np.array([1, 2])},
            "early_stopping must be an integer of at least 1; got array([1, 2]). Remedy: pass 'auto', False, True or a number of epochs.",
        ),
        ({"trees": 200}, "trees must be True or False; got 200."),
        ({"trees": 1}, "trees must be True or False; got 1."),
        ({"skip": "no"}, "skip must be True or False; got 'no'."),
        ({"warm_start": "no"}, "warm_start must be True or False; got 'no'."),
        ({"warm_start": np.ones(2)}, "warm_start must be True or False; got array([1., 1.])."),
        ({"verbose": "no"}, "verbose must be True, False or 2, which logs every epoch; got 'no'."),
        ({"verbose": -1}, "verbose must be True, False or 2, which logs every epoch; got -1."),
        ({"verbose": None}, "verbose must be True, False or 2, which logs every epoch; got None."),
    ],
)
def test_settings(settings, text):
    with pytest.raises(ff.InvalidArgument) as caught:
        ff.TabularClassifier(**{**QUICK, **settings}).fit(X, Y)
    assert str(caught.value) == text


def test_numbers_and_booleans_of_numpy_are_settings():
    numpys = {"hidden": np.int64(4), "early_stopping": np.True_, "n_jobs": np.int64(-1), "members": np.int32(1)}
    pythons = {"hidden": 4, "early_stopping": True, "n_jobs": -1, "members": 1}
    for name, flag in {"skip": False, "trees": False, "warm_start": True, "verbose": False}.items():
        numpys[name], pythons[name] = np.bool_(flag), flag
    models = [ff.TabularClassifier(**{**QUICK, **given}).fit(X, Y) for given in (numpys, pythons)]
    assert np.array_equal(*(model.decision_function(X) for model in models))


def test_bad_input_leaves_a_fitted_model_as_it_was():
    model = ff.TabularClassifier(**QUICK).fit(X, Y)
    before = model.decision_function(X)
    for fit in (
        lambda: model.fit(X, np.zeros(30)),
        lambda: model.fit(X, Y, sample_weight=np.zeros(30)),
        lambda: model.fit(X, Y + 5, validation_data=[X, Y]),
        lambda: model.fit(X[:, :2], Y + 5, validation_data=[X, Y]),
        lambda: model.partial_fit(X, np.full(30, 5)),
    ):
        with pytest.raises(ValueError, match="must|may"):
            fit()
        assert np.array_equal(model.decision_function(X), before)
        assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (np.zeros(30), "sample_weight must be above 0 for at least one row; got an array of zeros."),
        (
            np.where(np.arange(30) == 7, -1.5, 1.0),
            "sample_weight must not be negative; got -1.5. Remedy: leave rows out by a weight of 0.",
        ),
        (np.ones(29), "sample_weight must have one weight for each of the 30 rows; got shape (29,)."),
        (np.ones((30, 1)), "sample_weight must have one weight for each of the 30 rows; got shape (30, 1)."),
    ],
)
def test_sample_weights(weight, text):
    with pytest.raises(ff.InvalidArgument) as caught:
        ff.TabularClassifier(**QUICK).fit(X, Y, sample_weight=weight)
    assert str(caught.value) == text


def test_one_number_weighs_all_rows_alike():
    plain, twice = (ff.TabularClassifier(**QUICK).fit(X, Y, sample_weight=weight) for weight in (None, 2))
    assert np.array_equal(plain.decision_function(X), twice.decision_function(X))


OTHERS = "leave rows of other classes out, or start afresh with all classes"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda m: m.fit(X, np.zeros(30, int)),
            "y must hold at least two classes; got an array of one class (0). Remedy: pass samples of several classes.",
        ),
        (
            lambda m: m.fit(X, Y, validation_data=X),
            "validation_data must be a tuple (X, y) or (X, y, sample_weight); got a ndarray.",
        ),
        (
            lambda m: m.fit(X, Y, validation_data=(X, Y + 1)),
            f"validation_data: y may hold only the classes 0, 1; got 2. Remedy: {OTHERS}.",
        ),
        (
            lambda m: m.fit(X, Y, validation_data=(X[:, :2], Y)),
            "validation_data: X has 2 features, but TabularClassifier is expecting 3 features as input.",
        ),
        (
            lambda m: m.fit(X, Y, validation_data=(X, Y[:4])),
            "validation_data: Found input variables with inconsistent numbers of samples: [30, 4]",
        ),
        (
            lambda m: m.fit(X, Y, validation_data=(X, Y, np.ones(3))),
            "validation_data: sample_weight must have one weight for each of the 30 rows; got shape (3,).",
        ),
        (
            lambda m: m.fit(X, Y, validation_data=(np.where(X > 2, np.inf, X), Y)),
            "validation_data: X must hold finite numbers, or NaN where a value is missing; got an infinite value in row 26 of column 1. Remedy: put NaN in its place.",
        ),
        (
            lambda m: m.partial_fit(X, Y),
            "classes must be passed on the first call of partial_fit; got None. Remedy: pass numpy.unique(y).",
        ),
        (
            lambda m: m.partial_fit(X, Y, []),
            "classes must hold at least two classes; got an array of none. Remedy: name every class that rows may have.",
        ),
        (
            lambda m: m.partial_fit(X, Y, [None, 1]),
            "classes must hold classes of one type; got a mix of NoneType, int. Remedy: leave out the rows without a label, or give them one.",
        ),
        (
            lambda m: m.partial_fit(X, Y, [1, "u"]),
            "classes must hold classes of one type; got a mix of int, str. Remedy: make them texts.",
        ),
        (
            lambda m: m.partial_fit(X, np.full(30, None), [0, 1]),
            f"y may hold only the classes 0, 1; got None. Remedy: {OTHERS}.",
        ),
        (
            lambda m: m.partial_fit(X, np.array(["u", "v"] * 15, dtype=object), [0, 1]),
            f"y may hold only the classes 0, 1; got 'u'. Remedy: {OTHERS}.",
        ),
        (
            lambda m: m.partial_fit(X, Y, np.array(["u", "v"], dtype=object)),
            f"y may hold only the classes u, v; got 0. Remedy: {OTHERS}.",
        ),
        (
            lambda m: m.set_params(warm_start=True).fit(X, Y).fit(X, Y + 1),
            f"y may hold only the classes 0, 1; got 2. Remedy: {OTHERS}.",
        ),
        (
            lambda m: m.fit(X, Y).explain(X, np.array(["u", "v"] * 15, dtype=object)),
            f"y may hold only the classes 0, 1; got 'u'. Remedy: {OTHERS}.",
        ),
        (
            lambda m: m.set_params(class_weight="balanced").partial_fit(X, Y, [0, 1]),
            "class_weight must not be 'balanced' with partial_fit, which sees part of the rows; got 'balanced'. Remedy: pass a dict of weights.",
        ),
        (
            lambda m: m.set_params(class_weight=np.ones(2)).partial_fit(X, Y, [0, 1]),
            "class_weight must be a dict, 'balanced' or None; got array([1., 1.]).",
        ),
    ],
)
def test_data(call, text):
    with pytest.raises(ff.InvalidArgument) as caught:
        call(ff.TabularClassifier(**QUICK))
    assert str(caught.value) == text


GAPS = "leave out the rows without a label, or give them one"


@pytest.mark.parametrize(
    ("labels", "mix", "remedy"),
    [
        ([1, "v"] * 15, "int, str", "make them texts"),
        (pd.Series([1, "v"] * 15, dtype=object), "int, str", "make them texts"),
        ([b"u", "v"] * 15, "bytes, str", "make them texts"),
        ([None, "v"] * 15, "NoneType, str", GAPS),
        (["v", float("nan")] * 15, "float, str", GAPS),
        (pd.Series(["v", None] * 15, dtype="category"), "float, str", GAPS),
        (pd.Series(["v", None] * 15, dtype="string"), "NAType, str", GAPS),
    ],
)
def test_labels_of_several_types(labels, mix, remedy):
    text = f"y must hold classes of one type; got a mix of {mix}. Remedy: {remedy}."
    model = ff.TabularClassifier(**QUICK).fit(X, np.array(["u", "v"] * 15))
    for call in (model.fit, model.partial_fit, model.explain):
        with pytest.raises(ff.InvalidArgument) as caught:
            call(X, labels)
        assert str(caught.value) == text
    assert model.classes_.tolist() == ["u", "v"]


@pytest.mark.parametrize(
    ("labels", "kind", "remedy"),
    [
        ([b"u", b"v"] * 15, "bytes", "make them texts"),
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 15, "date", "make them texts"),
        (np.array([0, 1] * 15, dtype=object), "int", "pass y.astype(int)"),
    ],
)
def test_labels_that_are_neither_numbers_nor_texts(labels, kind, remedy):
    with pytest.raises(ff.InvalidArgument) as caught:
        ff.TabularClassifier(**QUICK).fit(X, labels)
    assert str(caught.value) == (
        "Unknown label type: y must hold classes that are numbers or texts; "
        f"got an array of objects of type {kind}. Remedy: {remedy}."
    )


def test_infinite_values_are_refused():
    with pytest.raises(ValueError, match=r"got an infinite value in row \d+ of column \d"):
        ff.TabularClassifier(**QUICK).fit(np.where(X > 2, np.inf, X), Y)


@pytest.mark.parametrize("name", ["monotonic_cst", "monotone_constraints"])
def test_monotone_constraints_are_refused_by_name(name):
    with pytest.raises(TypeError, match=name):
        ff.TabularRegressor(**{name: [1, 0, 0]})
    with pytest.raises(ValueError, match=f"Invalid parameter '{name}'"):
        ff.TabularRegressor().set_params(**{name: [1, 0, 0]})


def test_divergence_names_the_rate_and_the_remedy():
    optimiser = SGD(1e30, batch_size=8, epochs=5)
    with pytest.raises(ff.DivergenceError) as caught:
        ff.TabularRegressor(**QUICK, optimiser=optimiser).fit(X, X[:, 0])
    assert "is not finite at learning rate 1e+30. Remedy: lower the optimiser's learning_rate, to 1e+29" in str(
        caught.value
    )
    assert caught.value.learning_rate == 1e30
    assert caught.value.step > 0


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # the targets leave float32
def test_a_held_out_loss_that_is_not_finite_names_the_rows():
    with pytest.raises(ff.DivergenceError) as caught:
        ff.TabularRegressor(**QUICK, optimiser=AdamW(0.01)).fit(X, Y, validation_data=(X, 1e200 * X[:, 0]))
    assert str(caught.value) == (
        "the held-out loss of epoch 1 is not finite at learning rate 0.01. "
        "Remedy: lower the optimiser's learning_rate, to 0.001 for example, "
        "or look for extreme values in the held-out rows (validation_data, where it is passed)."
    )


def test_without_cupy_the_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ff.EngineUnavailable) as caught:
        ff.TabularClassifier(**QUICK, device="cuda").fit(X, Y)
    assert str(caught.value).startswith(
        "device='cuda' cannot train networks: CuPy is not installed. Remedy: pip install"
    )


def test_two_logs_every_epoch(capsys):
    for level, lines in ((0, 0), (np.int64(2), 2), (10, 2)):  # an epoch, and one of annealing
        ff.TabularClassifier(**QUICK, optimiser=AdamW(epochs=1), verbose=level).fit(X, Y)
        assert len(capsys.readouterr().err.splitlines()) == lines


def test_the_log_names_variant_epoch_and_losses(capsys):
    ff.TabularClassifier(**QUICK, optimiser=AdamW(epochs=2), verbose=2).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("standard, no gains: epoch 1 of at most 2: loss 0.")
    assert ", held out 0." in lines[1]
    assert lines[2].startswith("standard, no gains, annealing: epoch 1 of 1: loss 0.")


@pytest.mark.parametrize("level", [True, np.True_, 1])
def test_progress_is_one_line(capsys, level):
    model = ff.TabularClassifier(**QUICK, optimiser=AdamW(epochs=3), verbose=level).fit(X, Y)
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"fit, epochs: (\d) of \1, done, best loss {min(model.validation_curve_):.4f}, \d+ s", line)
    model.partial_fit(X, Y)
    assert re.fullmatch(r"fit, epochs: 1 of 1, done, \d+ s", capsys.readouterr().err.strip())


def test_a_terminal_shows_what_is_trained_and_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(_progress, "_FRAMES", 0.0)
    monkeypatch.setenv("COLUMNS", "120")
    ff.TabularClassifier(**QUICK, optimiser=AdamW(epochs=8), verbose=True).fit(X, Y)
    written = capsys.readouterr().err
    assert written.count("\n") == 1 and written.endswith("\n")  # one line, written anew
    states = [state.rstrip() for state in written.split("\r")[1:]]
    assert len(states) > 8
    assert re.fullmatch(
        r"\[#*-*\] fit, epochs: 1 of \d+, standard, no gains, best loss 0\.\d{4}, \d+ s, \d+ s left", states[0]
    )
    assert "annealing, best loss" in states[-2] and states[-1].startswith("[####################] fit, epochs: ")
    shares = [float(done) / float(total) for done, total in re.findall(r"epochs: (\d+) of (\d+)", written)]
    assert shares[0] < 0.3 and shares[-1] == 1.0 and all(share < 1 for share in shares[:-1])
