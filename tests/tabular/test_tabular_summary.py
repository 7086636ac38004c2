"""`summary()`: what a fitted model reports about itself."""

import re

import numpy as np
import pandas as pd
import pytest
from epoch_emulator import COMPILER, emulate
from sklearn.exceptions import NotFittedError

import fewfire as ff
from fewfire.tabular import AdamW

QUICK = {"hidden": (8,), "members": 2, "optimiser": AdamW(0.02, epochs=3), "random_state": 0}


def test_members_weights_and_time_are_reported():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "town": rng.choice(["a", "b"], 60)})
    model = ff.TabularClassifier(**QUICK).fit(frame, frame["x"] > 0)
    heading, titles, *members, temperature, spent = model.summary().splitlines()
    assert heading == "TabularClassifier of 2 columns, 1 of categories"
    assert titles.split() == ["member", "weight", "held-out", "loss", "trained"]
    told = {line[:32].strip(): float(line[32:40]) for line in members}
    assert told == {name: pytest.approx(weight, abs=5e-4) for name, weight in model.mixing_weights_.items()}
    assert list(told.values()) == sorted(told.values(), reverse=True)
    assert sum(line.endswith("3 epochs, 1 of annealing") for line in members) == len(members) - 2
    assert sum(bool(re.search(r"2 × (100 trees|\d+ rounds)$", line)) for line in members) == 2
    assert temperature == f"temperature of the networks: {model.temperature_:.2f}"
    times = r"networks \d+\.\d s, trees \d+\.\d s, annealing \d+\.\d s"
    assert re.fullmatch(f"time, all threads added up: {times}", spent)


@pytest.mark.skipif(COMPILER is None, reason="needs g++, which compiles the kernel for the processor")
def test_networks_on_a_gpu_are_timed_by_the_clock(monkeypatch, tmp_path):
    emulate(monkeypatch, tmp_path)
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = ff.TabularClassifier(**QUICK, device="cuda", scaling="rank", gains="none").fit(X, X[:, 0] > 0)
    spent = model.summary().splitlines()[-1]
    times = r"(networks|trees) \d+\.\d s, (networks|trees) \d+\.\d s, annealing \d+\.\d s"
    assert re.fullmatch(f"time, networks by the clock, threads of trees added up: {times}", spent)


def test_a_regressor_has_no_temperature_and_an_epoch_by_hand_no_losses():
    X = np.random.default_rng(0).normal(size=(40, 2))
    text = ff.TabularRegressor(**QUICK).partial_fit(X, X[:, 0]).summary()
    assert "temperature" not in text and text.endswith("time, all threads added up: not known")
    assert "1 epoch" in text and "1 epochs" not in text and "trees" not in text
    with pytest.raises(NotFittedError):
        ff.TabularRegressor().summary()
