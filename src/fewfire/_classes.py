"""Classes of labels: at least two, labels by their place among them, and two of them as −1 and +1."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from fewfire._errors import InvalidArgument, invalid

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, IdArray


def find_classes(labels: AnyArray, name: str = "y") -> AnyArray:
    """The classes that occur in labels (rows,), the argument of some name, ascending; at least two."""
    kinds = refuse_mixed(labels, name)
    if kinds and kinds != ["str"]:
        got = f"an array of objects of type {kinds[0]}"
        remedy = f"pass {name}.astype({kinds[0]})" if kinds[0] in ("bool", "int") else "make them texts"
        # scikit-learn looks for the first words.
        raise invalid(f"Unknown label type: {name}", "must hold classes that are numbers or texts", got, remedy)
    if labels.size:
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


def class_places(labels: AnyArray, classes: AnyArray, remedy: str = "name all classes at the start") -> IdArray:
    """The place of each label (rows,) among classes, ascending; one that is not among them is refused."""
    try:
        places = np.searchsorted(classes, labels)
        known = classes[np.minimum(places, len(classes) - 1)] == labels
    except TypeError:  # objects that cannot be compared with the classes
        members = set(classes.tolist())
        known = np.array([isinstance(label, Hashable) and label in members for label in labels.tolist()])
    if not known.all():
        names, got = ", ".join(map(str, classes)), labels[~known].tolist()[0]
        raise invalid("y", f"may hold only the classes {names}", got, remedy)
    return np.asarray(places, dtype=np.int64)


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
        # scikit-learn looks for this sentence in the error of an estimator for two classes.
        raise InvalidArgument(
            f"Only binary classification is supported. The type of the target is {type_of_target(labels)}; got "
            f"{len(classes)} classes. Remedy: wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
        )
    return classes, np.where(labels == classes[1], 1.0, -1.0)
