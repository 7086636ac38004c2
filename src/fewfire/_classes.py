"""Classes of labels: at least two, labels by their place among them, and two of them as −1 and +1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from fewfire._errors import InvalidArgument, invalid

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array, IdArray


def find_classes(labels: AnyArray) -> AnyArray:
    """The classes that occur, ascending; at least two."""
    try:
        check_classification_targets(labels)
        classes: AnyArray = np.unique(labels)
    except TypeError:  # labels that cannot be sorted
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise invalid("y", "must hold classes of one type", f"a mix of {', '.join(kinds)}", "make them texts") from None
    if len(classes) < 2:
        got = f"an array of one class ({classes[0]})"
        raise invalid("y", "must hold at least two classes", got, "pass samples of several classes")
    return classes


def class_places(labels: AnyArray, classes: AnyArray) -> IdArray:
    """The place of each label (rows,) among classes, ascending; one that is not among them is refused."""
    places = np.searchsorted(classes, labels)
    known = classes[np.minimum(places, len(classes) - 1)] == labels
    if not known.all():
        names, got = ", ".join(map(str, classes)), labels[~known].tolist()[0]
        raise invalid("y", f"may hold only the classes {names}", got, "name all classes at the start")
    return np.asarray(places, dtype=np.int64)


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
