"""Checks of arguments and of labels that several packages share. Each raises `InvalidArgument` and changes nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np

from fewfire._errors import InvalidArgument, invalid
from fewfire._types import AnyArray, Float64Array, FloatArray, IdArray, SignArray

Floats = TypeVar("Floats", bound="FloatArray")


def check_integer(name: str, value: object, low: int, high: int | None = None, remedy: str = "") -> int:
    """An integer in [low, high]; booleans and floats are refused."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        if number >= low and (high is None or number <= high):
            return number
    upper = "" if high is None else f" and at most {high}"
    raise invalid(name, f"must be an integer of at least {low}{upper}", value, remedy)


def check_number(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    remedy: str = "",
) -> float:
    """A finite real number in the interval from low to high, ends included unless opened."""
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        number = float(value) if real else math.nan  # type: ignore[arg-type]
    except OverflowError:  # an integer of more than 1024 bits
        number = math.inf
    too_low = number <= low if open_low else number < low
    too_high = number >= high if open_high else number > high
    if not math.isfinite(number) or too_low or too_high:
        left, right = "(" if open_low or low == -math.inf else "[", ")" if open_high or high == math.inf else "]"
        raise invalid(name, f"must be a finite number in {left}{low:g}, {high:g}{right}", value, remedy)
    return number


def check_flag(name: str, value: object) -> bool:
    """True or False; a number or a text, which would count by its truth, is refused."""
    if not isinstance(value, bool | np.bool_):
        raise invalid(name, "must be True or False", value)
    return bool(value)


def refuse_masked(name: str, values: object, remedy: str) -> None:
    """Refuse an array of numpy.ma that hides values: conversions would bring them back."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        got = f"an array of which {np.ma.getmaskarray(values).sum()} values are masked"
        raise invalid(name, "must not hide values, for masks are not looked at", got, remedy)


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """One of a few names; the error lists them and guesses which one was meant."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        raise invalid(name, f"must be one of {', '.join(map(repr, names))}", value, did_you_mean(value, names))
    return value


def counted(count: int, noun: str) -> str:
    """A number and its noun: 1 run, 2,000 runs."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def did_you_mean(word: object, names: Iterable[str]) -> str:
    """The remedy for a misspelt name: the nearest of those there are, the one it abbreviates or is a part of, or none.

    >>> did_you_mean("lr", ["steps", "learning_rate"])
    "write 'learning_rate' if that is what was meant"
    >>> did_you_mean("quixotic", ["steps", "learning_rate"])
    ''
    """
    if not isinstance(word, str) or not word:
        return ""
    known = {name.lower(): name for name in names}
    written = word.lower()
    near = get_close_matches(written, known, n=1, cutoff=0.8 if len(word) < 5 else 0.6)  # 'gpu' is no misspelt 'cpu'
    near += [name for name in known if written == "".join(part[:1] for part in re.split(r"[\W_]+", name))]
    near += [name for name in known if (len(written) > 2 and written in name) or written[1:] == name]
    return f"write {known[near[0]]!r} if that is what was meant" if near else ""


def check_support(name: str, support: Sequence[int], n: int) -> tuple[int, ...]:
    """Distinct coordinates in range(n), kept in the order given."""
    members = tuple(support)
    if not all(type(member) is int and 0 <= member < n for member in members):  # the rule, before its wording
        members = tuple(check_integer(f"{name}[{i}]", member, 0, n - 1) for i, member in enumerate(members))
    if len(set(members)) != len(members):
        raise invalid(name, "must hold distinct coordinates", members, "remove the repeated ones")
    return members


def check_signs(name: str, values: object, columns: int | None = None) -> SignArray:
    """A non-empty table of ±1, returned as int8 of shape (rows, columns)."""
    array = _table(name, values, columns)
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise invalid(name, "must hold numbers", f"dtype {array.dtype}", "encode every column as +1 or −1")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise invalid(name, "may hold only +1 and −1", "NaN", "drop or impute the missing values")
    wrong = array[(array != 1) & (array != -1)]
    if wrong.size:
        raise invalid(name, "may hold only +1 and −1", wrong[0].item(), "map 0 to +1 and 1 to −1, or threshold it")
    return array.astype(np.int8, copy=False)


def check_inputs(name: str, values: object, columns: int | None, dtype: np.dtype[Any]) -> AnyArray:
    """A non-empty table of finite numbers; int8 stays int8 (exact ±1), everything else becomes `dtype`."""
    array = _table(name, values, columns)
    if array.dtype == np.int8:
        return array
    if array.dtype.kind not in "biuf":
        raise invalid(name, "must hold numbers", f"dtype {array.dtype}", "encode every column as a number")
    return check_finite(name, array.astype(dtype, copy=False))


def check_finite(name: str, array: Floats) -> Floats:
    """An array without NaN or infinity."""
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        bad = f"{array[where]} at index {where}"
        raise invalid(name, "must hold finite numbers", f"a {bad}", "drop or impute the missing values")
    return array


def check_labels(name: str, values: object, rows: int) -> FloatArray:
    """A vector of finite numbers, one per row."""
    array = np.asarray(values)
    if array.ndim != 1 or len(array) != rows:
        raise invalid(name, f"must be a vector of {rows} labels, one per row of X", f"shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise invalid(name, "must hold numbers", f"dtype {array.dtype}", "encode the classes as +1 and −1")
    return check_finite(name, array.astype(np.float64))


def check_sample_weight(weight: object, rows: int, name: str = "sample_weight") -> Float64Array:
    """Weights (rows,), float64, of an array, of one number, or of None, which is 1: at least 0, and not all 0."""
    refuse_masked(name, weight, "pass 0 for rows that are to be left out")
    try:
        found = np.array(1.0 if weight is None else weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid(name, "must hold numbers", type(weight).__name__) from None
    if found.ndim == 0:
        found = np.full(rows, float(found))
    if found.shape != (rows,):
        raise invalid(name, f"must have one weight for each of the {rows} rows", f"shape {found.shape}")
    check_finite(name, found)
    if (found < 0).any():
        raise invalid(name, "must not be negative", float(found.min()), "leave rows out by a weight of 0")
    if not found.any():
        raise invalid(name, "must be above 0 for at least one row", "an array of zeros")
    return found


def _table(name: str, values: object, columns: int | None) -> AnyArray:
    array: AnyArray = np.asarray(values)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        width = "columns" if columns is None else str(columns)
        raise invalid(name, f"must be a table of shape (rows, {width})", f"shape {array.shape}", "reshape it")
    if array.size == 0:
        raise invalid(name, "must not be empty", f"shape {array.shape}", "pass at least one row and one column")
    return array


def find_classes(labels: AnyArray, name: str = "y") -> AnyArray:
    """The classes that occur in labels (rows,), the argument of some name, ascending; at least two."""
    kinds = refuse_mixed(labels, name)
    if kinds and kinds != ["str"]:
        got = f"an array of objects of type {kinds[0]}"
        remedy = f"pass {name}.astype({kinds[0]})" if kinds[0] in ("bool", "int") else "make them texts"
        # scikit-learn looks for the first words.
        raise invalid(f"Unknown label type: {name}", "must hold classes that are numbers or texts", got, remedy)
    if labels.size:
        from sklearn.utils.multiclass import (
            check_classification_targets,  # late: `import fewfire` loads no scikit-learn
        )

        check_classification_targets(labels)
    classes: AnyArray = np.unique(labels)
    if len(classes) < 2:
        got = f"an array of one class ({classes[0]})" if len(classes) else "an array of none"
        remedy = "pass samples of several classes" if name == "y" else "name every class that rows may have"
        raise invalid(name, "must hold at least two classes", got, remedy)
    return classes


def refuse_mixed(labels: object, name: str = "y") -> list[str]:
    """Refuse labels of several types, a missing one among texts included; the type of those that are Python's objects.

    NumPy makes a list of texts and numbers one of texts, so that NaN would be the class 'nan'.
    """
    try:
        values = np.asarray(labels)
    except ValueError:  # rows of several lengths, which scikit-learn refuses
        return []
    if isinstance(labels, list | tuple) and values.dtype.kind in "US":
        values = np.array(labels, dtype=object)
    if not values.ndim or values.dtype.kind not in "OS":
        return []
    listed = values.ravel().tolist()
    kinds = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in listed})
    if len(kinds) > 1:
        named = {"NoneType", "NAType", "NaTType"}
        gaps = any(type(label).__name__ in named or (isinstance(label, float) and label != label) for label in listed)
        remedy = "leave out the rows without a label, or give them one" if gaps else "make them texts"
        raise invalid(name, "must hold classes of one type", f"a mix of {', '.join(kinds)}", remedy)
    return kinds


def class_indices(labels: AnyArray, classes: AnyArray, remedy: str = "name all classes at the start") -> IdArray:
    """The index of each label (rows,) among classes, ascending; one that is not among them is refused."""
    try:
        indices = np.searchsorted(classes, labels)
        known = classes[np.minimum(indices, len(classes) - 1)] == labels
    except TypeError:  # objects that cannot be compared with the classes
        members = set(classes.tolist())
        known = np.array([isinstance(label, Hashable) and label in members for label in labels.tolist()])
    if not known.all():
        names, got = ", ".join(map(str, classes)), labels[~known].tolist()[0]
        raise invalid("y", f"may hold only the classes {names}", got, remedy)
    return np.asarray(indices, dtype=np.int64)


def is_balanced(class_weight: object) -> bool:
    """Whether the weights of classes are to be balanced; an array would compare element by element."""
    return isinstance(class_weight, str) and class_weight == "balanced"


def two_classes(labels: AnyArray, *, lone_sign: bool = False) -> tuple[AnyArray, Float64Array]:
    """The two classes, ascending, and the labels as −1 for the first and +1 for the second.

    With `lone_sign`, labels that are all −1 or all +1 have the two classes −1 and +1 instead of too few.
    """
    if lone_sign and labels.dtype.kind in "if" and (np.all(labels == 1) or np.all(labels == -1)):
        return np.array([-1, 1], dtype=labels.dtype), labels.astype(np.float64)
    classes = find_classes(labels)
    if len(classes) > 2:
        from sklearn.utils.multiclass import type_of_target

        # scikit-learn looks for this sentence in the error of an estimator for two classes.
        raise InvalidArgument(
            f"Only binary classification is supported. The type of the target is {type_of_target(labels)}; got "
            f"{len(classes)} classes. Remedy: wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
        )
    return classes, np.where(labels == classes[1], 1.0, -1.0)
