"""Registering a problem names what its class lacks, before a sweep meets it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from fewfire.problems import Problem, SignProblem, register_problem, unregister_problem


@dataclass(frozen=True)
class Shell:
    name: ClassVar = "test_shell"
    n: int
    bayes_error: ClassVar = 0.0

    @property
    def inputs(self):
        return self.n

    def target(self, X):
        return np.sign(np.asarray(X).sum(axis=1))

    def sample(self, m, seed=0, start=0):
        X = np.ones((m, self.n))
        return X, self.target(X)


def changed(**members):
    return dataclass(frozen=True)(type("Changed", (Shell,), {"__annotations__": {}, **members}))


def test_a_class_without_describe_gets_one():
    kind = register_problem(changed(name="test_changed"))
    try:
        assert isinstance(kind(3), Problem) and kind(3).describe() == {"name": "test_changed", "n": 3}
    finally:
        unregister_problem(kind)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"inputs": lambda self: 3}, "must have inputs as a property, not a method"),
        ({"bayes_error": lambda self: 0.0}, "must have bayes_error as a property, not a method"),
        ({"sample": None}, r"add sample\(\)"),
        ({"target": None, "sample": None}, r"add sample\(\), target\(\)"),
    ],
)
def test_what_is_wrong_is_named(members, text):
    with pytest.raises(ValueError, match=text):
        register_problem(changed(**members))


def test_a_sign_problem_without_values_and_inputs():
    @dataclass(frozen=True)
    class Bare(SignProblem):
        name: ClassVar = "test_bare"
        noise: float = 0.0

    with pytest.raises(ValueError, match=r"add inputs, _values\(\)"):
        register_problem(Bare)


def test_a_problem_that_may_change_is_refused():
    with pytest.raises(ValueError, match="must be frozen"):
        register_problem(dataclass(type("Loose", (), {"name": "test_loose", "__annotations__": {}})))
