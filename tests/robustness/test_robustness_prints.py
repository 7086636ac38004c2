"""What results of attacks and certificates print: counts that add up, and the adversary."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.linear_model import LinearRegression, LogisticRegression

from fewfire.robustness import attack, certify


@pytest.fixture
def moons():
    X, y = make_moons(100, noise=0.1, random_state=0)
    return LogisticRegression().fit(X, y), X, y


def test_an_attack_prints_what_it_fooled(moons):
    found = attack(*moons, rho=0.3)
    clean = found.found_counts["clean"]
    wrong = int(found.success.sum())
    searches = r"\((\w+ \d+(?:, \w+ \d+)*)\)"
    match = re.fullmatch(
        rf"AttackResult: {wrong} of 100 rows predicted wrongly: {clean} as they are, {wrong - clean} within ℓ₂ 0.3 {searches}",
        repr(found),
    )
    assert match and sum(int(part.split()[1]) for part in match[1].split(", ")) == wrong - clean


def test_a_certificate_prints_what_is_proved_fooled_and_open(moons):
    proof = certify(*moons, rho=0.3, norm="linf")
    proved, fooled = int(proof.robust.sum()), int((proof.upper <= 0).sum())
    assert repr(proof).startswith(f"Certificate: {proved} of 100 rows proved (")
    assert repr(proof).endswith(f"), {fooled} fooled, {100 - proved - fooled} open within ℓ∞ 0.3")


def test_notebooks_show_a_table(moons):
    found, proof = attack(*moons, rho=0.3), certify(*moons, rho=0.3)
    assert repr(found).partition(": ")[2] in found._repr_html_() and ">frank_wolfe</th>" in found._repr_html_()
    assert repr(proof).partition(": ")[2] in proof._repr_html_() and ">proved by " in proof._repr_html_()


def test_radii_per_feature_are_named(moons):
    assert "within ℓ₂ 0.2 in units of the features" in repr(attack(*moons, rho=[0.1, 0.2]))


def test_regressors_print_errors():
    X = np.linspace(-1, 1, 20)[:, None]
    y = 2 * X[:, 0] + np.where(np.arange(20) % 2, 0.5, -0.5)
    model = LinearRegression().fit(X, y)
    error = np.abs(model.predict(X) - y).mean()
    moved = error + 0.1 * abs(model.coef_[0])
    assert repr(attack(model, X, y, rho=0.1)) == (
        f"AttackResult: mean error {error:.4g} as the rows are, {moved:.4g} within ℓ₂ 0.1"
    )
    assert repr(certify(model, X, y, rho=0.1)).startswith(
        f"Certificate: mean error at most {moved:.4g} within ℓ₂ 0.1, "
    )
