"""The models by name, the paper's networks as they start, and Table 2 as printed."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from fewfire import InvalidArgument
from fewfire.papers.pareto.tables import MODELS, TABLE_2, PaperNetwork, find_models, published
from fewfire.problems.tabular import DATASETS


def test_names_and_families():
    grid = find_models(["forest-grid"])
    assert len({model.name for model in grid}) == 5 * 6 * 3 and {model.family for model in grid} == {"forest-grid"}
    assert "forest-None-sqrt-100" in {model.name for model in grid}
    networks = find_models(["paper-network", "sparse-100", "dense-17"])
    assert len(networks) == 13  # sparse-100 is one of the twelve
    assert dict(networks[-1].settings) == {"width": 17, "sparsity": None} and networks[-1].standardised
    assert [model.name for model in find_models(["mlp", "forest", "mlp"])] == ["mlp", "forest"]
    with pytest.raises(InvalidArgument, match="models must be among fewfire, forest, .*dense-WIDTH.*; got 'sparse-0'"):
        find_models(["sparse-0"])


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr("fewfire.papers.pareto.tables.is_installed", lambda name: False)
    assert MODELS["catboost"].missing() == "the package 'catboost' is not installed (pip install --no-deps catboost)"
    assert MODELS["forest"].missing() == ""


def test_deep_rivals_come_from_pytabkit_by_their_defaults(monkeypatch):
    """The package is not needed for this: what is asked of it is a name, a seed and one thread."""
    names = ("RealMLP_TD_Classifier", "TabM_D_Classifier")
    package = SimpleNamespace(**{name: lambda name=name, **given: (name, given) for name in names})
    monkeypatch.setattr("fewfire.papers.pareto.tables.import_module", {"pytabkit": package}.__getitem__)
    for model, name in zip(find_models(["realmlp", "tabm"]), names, strict=True):
        assert model.package == "pytabkit"
        assert model.build(3, **model.settings) == (name, {"random_state": 3, "n_threads": 1})


def test_keys_change_with_settings_and_versions():
    keys = [model.key() for model in find_models(["forest", "forest-2-3-10", "sparse-10", "dense-10"])]
    assert keys[0]["settings"] == {"n_estimators": 300, "min_samples_leaf": 3} and "scikit-learn" in keys[0]
    assert len({str(key) for key in keys}) == 4


def test_the_defaults_of_fewfire_are_part_of_its_key(monkeypatch):
    import fewfire
    from fewfire.papers.pareto import tables

    class Estimator:
        def __init__(self, width=7, random_state=None):
            self.width, self.random_state = width, random_state

        def get_params(self):
            return {"width": self.width, "random_state": self.random_state}

    monkeypatch.setattr(fewfire, "TabularClassifier", Estimator, raising=False)
    assert tables.MODELS["fewfire"].missing() == ""
    assert tables.MODELS["fewfire"].key()["settings"] == {"width": "7"}
    monkeypatch.setattr(fewfire, "TabularClassifier", lambda random_state: Estimator(8))
    assert tables.MODELS["fewfire"].key()["settings"] == {"width": "8"}


def test_the_forest_of_table_2_cannot_have_depth_minus_one():
    """pareto, C.3, prints max_depth −1; scikit-learn refuses it and writes None for no limit."""
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="The 'max_depth' parameter"):
        RandomForestClassifier(max_depth=-1).fit(X, y)
    assert {model.settings["max_depth"] for model in find_models(["forest-grid"])} == {None, 2, 3, 4, 10}


@pytest.mark.parametrize("sparsity", [2, None])
def test_the_networks_start_as_in_the_paper(sparsity):
    X, y = np.random.default_rng(0).normal(size=(60, 7)), np.arange(60) % 2
    before = PaperNetwork(50, sparsity, learning_rate=1e-12, epochs=1).fit(X, y).network_
    assert [weights.shape for weights in before.coefs_] == [(7, 50), (50, 50), (50, 50), (50, 1)]
    if sparsity:
        rows = before.coefs_[0].T.round(6)
        assert ((rows != 0).sum(axis=1) == 2).all() and set(np.unique(rows)) == {0, 1}
    for layer, weights in enumerate(before.coefs_):
        bound = 1 / np.sqrt(len(weights)) + 1e-6
        if layer or not sparsity:
            assert np.abs(weights).max() <= bound and abs(weights.std() - bound / np.sqrt(3)) < 0.25 * bound
        assert np.abs(before.intercepts_[layer]).max() <= bound


def test_networks_learn_and_repeat_themselves():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(300, 5))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    first, again = (PaperNetwork(30, 2, epochs=150, random_state=3).fit(X, y) for _ in range(2))
    assert np.mean(first.predict(X) == y) > 0.95 and (first.predict(X) == again.predict(X)).all()
    assert list(first.classes_) == ["other", "same"]


def test_adam_is_what_c3_must_mean():
    """C.1 names SGD; at C.3's rate of 1e-3 plain SGD does not leave the start in 100 epochs, and Adam does."""
    generator = np.random.default_rng(2)
    X = generator.normal(size=(600, 5))
    y = (X[:, 0] > np.abs(X[:, 1]) - 0.6).astype(int)
    errors = {
        solver: np.mean(PaperNetwork(30, 2, solver=solver).fit(X, y).predict(X) != y) for solver in ("sgd", "adam")
    }
    assert errors["adam"] < 0.03 and errors["sgd"] > 0.2


def test_table_2_as_printed():
    assert list(TABLE_2) == list(DATASETS)
    assert published("pol", 0.01) == {"network": 12.3, "forest": 10.0}
    assert published("heloc", 1.0) == {"network": 27.1, "forest": 27.8} and published("heloc", 0.3) == {}
    assert TABLE_2["california"]["quoted"]["best"] == 9.7
    assert np.mean([row["network"][0.1] for row in TABLE_2.values()]) == pytest.approx(
        371.9 / 16
    )  # sums of the columns
    assert np.mean([row["forest"][0.01] for row in TABLE_2.values()]) == pytest.approx(420.8 / 16)
