"""The exception tree and the wording of the shared checks."""

import pickle

import numpy as np
import pytest

from fewfire import _errors, _optional, _validate


def test_the_tree():
    assert issubclass(_errors.InvalidArgument, ValueError)
    assert issubclass(_errors.FileFormatError, ValueError)
    assert issubclass(_errors.DivergenceError, ArithmeticError)
    assert issubclass(_errors.MissingDependency, ImportError)
    assert issubclass(_errors.EngineUnavailable, RuntimeError)
    tree = [value for value in vars(_errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(error, _errors.FewfireError | _errors.FewfireWarning) for error in tree)


def test_divergence_survives_pickling():
    error = pickle.loads(pickle.dumps(_errors.DivergenceError("text", step=7, learning_rate=0.5)))
    assert (str(error), error.step, error.learning_rate) == ("text", 7, 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _validate.check_integer("k", 5, 1, 3, "lower k"),
         "k must be an integer of at least 1 and at most 3; got 5. Remedy: lower k."),
        (lambda: _validate.check_integer("k", 2.0, 1), "k must be an integer of at least 1; got 2.0."),
        (lambda: _validate.check_integer("k", True, 1), "k must be an integer of at least 1; got True."),
        (lambda: _validate.check_number("noise", 0.7, 0, 0.5), "noise must be a finite number in [0, 0.5]; got 0.7."),
        (lambda: _validate.check_number("rate", float("nan")),
         "rate must be a finite number in (-inf, inf); got nan."),
        (lambda: _validate.check_number("eps", 0, 0, 1, open_low=True, open_high=True),
         "eps must be a finite number in (0, 1); got 0."),
        (lambda: _validate.check_choice("loss", "hing", ["hinge", "square"]),
         "loss must be one of 'hinge', 'square'; got 'hing'. Remedy: write 'hinge' if that is what was meant."),
        (lambda: _validate.check_choice("loss", 3, ["hinge", "square"]), "loss must be one of 'hinge', 'square'; got 3."),
        (lambda: _validate.check_support("support", (0, 3), 3),
         "support[1] must be an integer of at least 0 and at most 2; got 3."),
        (lambda: _validate.check_support("support", (0, 0), 3),
         "support must hold distinct coordinates; got (0, 0). Remedy: remove the repeated ones."),
        (lambda: _validate.check_signs("X", [[1, 0]]),
         "X may hold only +1 and −1; got 0. Remedy: map 0 to +1 and 1 to −1, or threshold it."),
        (lambda: _validate.check_signs("X", [[1, np.nan]]),
         "X may hold only +1 and −1; got NaN. Remedy: drop or impute the missing values."),
        (lambda: _validate.check_signs("X", [["a"]]),
         "X must hold numbers; got dtype <U1. Remedy: encode every column as +1 or −1."),
        (lambda: _validate.check_signs("X", [1, 1]),
         "X must be a table of shape (rows, columns); got shape (2,). Remedy: reshape it."),
        (lambda: _validate.check_signs("X", np.ones((2, 3)), 4),
         "X must be a table of shape (rows, 4); got shape (2, 3). Remedy: reshape it."),
        (lambda: _validate.check_signs("X", np.ones((0, 3))),
         "X must not be empty; got shape (0, 3). Remedy: pass at least one row and one column."),
        (lambda: _validate.check_inputs("X", [[1.0, np.inf]], 2, np.dtype("float32")),
         "X must hold finite numbers; got a inf at index (0, 1). Remedy: drop or impute the missing values."),
        (lambda: _validate.check_labels("y", [1, 2], 3),
         "y must be a vector of 3 labels, one per row of X; got shape (2,)."),
        (lambda: _validate.check_labels("y", ["a"], 1),
         "y must hold numbers; got dtype <U1. Remedy: encode the classes as +1 and −1."),
    ],
)  # fmt: skip
def test_texts(call, message):
    with pytest.raises(_errors.InvalidArgument) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("word", "meant"),
    [("learning_rat", "learning_rate"), ("LR", "learning_rate"), ("wd", "weight_decay"), ("rate", "learning_rate"),
     ("Steps", "steps"), ("frontier", "pareto/frontier"), ("cpuu", "cpu"), ("gpu", None), ("x", None), ("", None)],
)  # fmt: skip
def test_misspelt_and_shortened_names_are_guessed(word, meant):
    names = ["steps", "learning_rate", "weight_decay", "pareto/frontier", "cpu"]
    assert _validate.did_you_mean(word, names) == (f"write {meant!r} if that is what was meant" if meant else "")


def test_signs_are_returned_as_int8():
    assert _validate.check_signs("X", [[1.0, -1.0]]).dtype == np.int8
    same = np.ones((2, 2), dtype=np.int8)
    assert _validate.check_signs("X", same) is same


def test_optional_packages():
    assert _optional.require("json", "plot", "Drawing").__name__ == "json"
    assert _optional.is_installed("json") and not _optional.is_installed("no_such_package")
    with pytest.raises(
        ImportError, match=r"Drawing needs the package 'no_such_package'.*pip install 'fewfire\[plot\]'"
    ):
        _optional.require("no_such_package", "plot", "Drawing")


def test_values_of_any_size_are_formatted_in_one_short_line():
    assert str(_errors.invalid("name", "must be short", "x" * 10_000)).endswith("xxx… (10,002 characters).")
    assert "got an integer of thousands of digits." in str(_errors.invalid("n", "must be small", 10**5000))
    with pytest.raises(_errors.InvalidArgument, match="rate must be a finite number"):
        _validate.check_number("rate", 10**400)
    with pytest.raises(_errors.InvalidArgument, match="rate must be a finite number"):
        _validate.check_number("rate", -(10**5000))
