"""Fits that go on from earlier ones: what they check, and that a failed one changes nothing."""

import pickle

import numpy as np
import pandas as pd
import pytest

import fewfire as ff
from fewfire.tabular import SGD, AdamW
from fewfire.tabular._training import TrainedNetwork

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), np.arange(30) % 2
QUICK = {"hidden": (8,), "members": 1, "scaling": "standard", "gains": "none", "trees": False, "random_state": 0}


def test_classes_of_a_failed_partial_fit_are_forgotten():
    model = ff.TabularClassifier(**QUICK)
    with pytest.raises(ff.InvalidArgument):
        model.partial_fit(X, Y + 5, classes=[0, 1, 2])
    assert model.fit(X, Y).classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("rows", "got"),
    [
        (X[:1], "a single row"),
        (np.ones((4, 3)), "a table of 4 rows in which none does"),
        (np.full((1, 3), np.nan), "a single row"),
    ],
)
def test_first_rows_that_would_drop_all_columns_for_good(rows, got):
    model = ff.TabularClassifier(**QUICK)
    with pytest.raises(ff.InvalidArgument) as caught:
        model.partial_fit(rows, Y[: len(rows)], classes=[0, 1])
    assert str(caught.value) == (
        "X must have columns that vary in the first call of partial_fit, which settles those that are used; "
        f"got {got}. Remedy: begin with more rows."
    )
    assert not hasattr(model, "classes_") and not hasattr(model, "n_features_in_")
    model.partial_fit(X, Y, classes=[0, 1]).partial_fit(X[:1], Y[:1])  # later calls may have one row
    assert len(set(model.decision_function(X))) > 1
    ff.TabularClassifier(**QUICK).fit(np.ones_like(X), Y)  # a fit on constants is the classes' shares


def test_columns_that_the_first_rows_drop_are_reported():
    text = (
        "X does not vary in column{} in the first call of partial_fit, which settles the columns that are used: "
        "later calls will not use them. Remedy: begin with more rows."
    )
    frame = pd.DataFrame({"a": X[:, 0], "b": 1.0, "c": ["u", None] * 15, "d": "u", "e": np.nan})
    many = np.c_[X, np.zeros((30, 7))]
    for rows, columns in ((frame, "s 'b', 'd', 'e'"), (many[:, :4], " 3"), (many, "s 3, 4, 5, 6, 7 and 2 more")):
        model = ff.TabularRegressor(**QUICK)
        with pytest.warns(ff.FewfireWarning) as caught:
            model.partial_fit(rows, X[:, 0])
        assert [str(warning.message) for warning in caught] == [text.format(columns)]
        assert caught[0].filename == __file__
        model.partial_fit(rows, X[:, 0])  # reported once
        ff.TabularRegressor(**QUICK).fit(rows, X[:, 0])  # a fit has seen all rows there are


def test_a_later_partial_fit_must_keep_the_classes():
    model = ff.TabularClassifier(**QUICK).partial_fit(X, Y, classes=[0, 1])
    model.partial_fit(X, Y, classes=[1, 0])  # the same ones
    with pytest.raises(ff.InvalidArgument) as caught:
        model.partial_fit(X, Y, classes=[0, 1, 2])
    assert str(caught.value) == (
        "classes must stay 0, 1, those of the first call; got [0, 1, 2]. "
        "Remedy: leave classes out, or start with a fresh estimator."
    )
    with pytest.raises(ff.InvalidArgument, match="must stay 0, 1"):
        model.partial_fit(X, Y, classes=["no", "yes"])


@pytest.mark.parametrize("go_on", [lambda m: m.fit(X, Y), lambda m: m.partial_fit(X, Y)], ids=["fit", "partial_fit"])
def test_an_interruption_in_the_second_variant_changes_nothing(monkeypatch, go_on):
    all_variants = {**QUICK, "gains": "auto", "early_stopping": False, "optimiser": AdamW(epochs=2)}
    model = ff.TabularClassifier(**all_variants, warm_start=True).fit(X, Y)
    before, curve, left = model.decision_function(X), model.loss_curve_, pickle.dumps(model)
    weights = dict(model.mixing_weights_)
    assert len(weights) == 3
    train_epoch, seen = TrainedNetwork.train_epoch, []

    def interrupted(network, rows):
        seen.append(network.stream.name.partition("/member")[0])
        if len(set(seen)) > 1:
            raise KeyboardInterrupt
        return train_epoch(network, rows)

    with monkeypatch.context() as patch:
        patch.setattr(TrainedNetwork, "train_epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            go_on(model)
    assert np.array_equal(model.decision_function(X), before)
    assert (model.loss_curve_, model.mixing_weights_) == (curve, weights)
    # Nor does it show later: training goes on as if the interruption had not been.
    untouched = go_on(pickle.loads(left))
    assert np.array_equal(go_on(model).decision_function(X), untouched.decision_function(X))


def test_after_a_divergence_a_smaller_rate_goes_on():
    rule = SGD(0.01, batch_size=8)
    model = ff.TabularRegressor(**QUICK, optimiser=rule).partial_fit(X, X[:, 0])
    before = model.predict(X)
    model.set_params(optimiser__learning_rate=1e30)
    with pytest.raises(ff.DivergenceError):
        model.partial_fit(X, X[:, 0])
    assert np.array_equal(model.predict(X), before)
    model.set_params(optimiser__learning_rate=0.01).partial_fit(X, X[:, 0])
    assert np.isfinite(model.predict(X)).all() and model.n_iter_ == 2


def test_a_rate_set_between_calls_is_the_rate_of_the_next():
    model = ff.TabularRegressor(**QUICK, optimiser=SGD(0.01)).partial_fit(X, X[:, 0]).partial_fit(X, X[:, 0])
    before = model.predict(X)
    model.set_params(optimiser__learning_rate=1e-12, optimiser__momentum=0.0).partial_fit(X, X[:, 0])
    np.testing.assert_allclose(model.predict(X), before, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, y, other: m.fit(X, y, validation_data=(X, other)),
        lambda m, y, other: m.set_params(warm_start=True).fit(X, y).fit(X, other),
        lambda m, y, other: m.partial_fit(X, y).partial_fit(X, other),
    ],
    ids=["validation_data", "warm_start", "partial_fit"],
)
def test_targets_keep_their_number_of_columns(call):
    model = ff.TabularRegressor(**QUICK, optimiser=AdamW(epochs=1))
    with pytest.raises(ff.InvalidArgument) as caught:
        call(model, X, X[:, 0])
    assert str(caught.value).removeprefix("validation_data: ") == (
        "y must have 3 columns, as in the first fit; got shape (30,). Remedy: pass as many columns, or fit a fresh estimator."
    )
    with pytest.raises(ff.InvalidArgument, match=r"must have 1 column, as in the first fit; got shape \(30, 2\)"):
        call(ff.TabularRegressor(**QUICK, optimiser=AdamW(epochs=1)), X[:, 0], X[:, :2])


def test_progress_of_partial_fit_reports_no_old_held_out_loss(capsys):
    model = ff.TabularClassifier(**QUICK, optimiser=AdamW(epochs=1), verbose=2).fit(X, Y).partial_fit(X, Y)
    fitted, annealed, partly = capsys.readouterr().err.splitlines()
    assert model.validation_curve_
    assert "held out" in fitted and "held out" not in annealed + partly


def test_another_optimiser_takes_over_in_a_warm_fit():
    settings = {**QUICK, "warm_start": True, "early_stopping": False}
    moved = []
    for rate in (1e-9, 1e-2):
        model = ff.TabularClassifier(**{**settings, "optimiser": AdamW(0.01, epochs=2)}).fit(X, Y)
        before = model.decision_function(X)
        model.set_params(optimiser=AdamW(rate, epochs=2)).fit(X, Y)
        moved.append(np.abs(model.decision_function(X) - before).max())
    assert moved[0] < 1e-5 < 1e-2 < moved[1]


def test_members_stay_in_a_warm_fit():
    model = ff.TabularClassifier(**{**QUICK, "warm_start": True, "members": 2}).fit(X, Y)
    before = model.decision_function(X)
    (group,) = model.set_params(members=4).fit(X, Y)._ensemble.groups.values()
    assert len(group.weights) == 2
    assert not np.array_equal(model.decision_function(X), before)
