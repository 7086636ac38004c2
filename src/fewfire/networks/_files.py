"""Networks in files: a safe archive (`fewfire._archive`) of the five parts of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire import _archive
from fewfire._errors import InvalidArgument
from fewfire.networks._two_layer import TwoLayer

if TYPE_CHECKING:
    import os

FORMAT: Final = "fewfire.networks.TwoLayer"
VERSION: Final = 1
_FIELDS: Final = ("hidden", "bias", "output", "offset", "activation")
_AGAIN: Final = "write it again with net.save"


def save(net: TwoLayer, path: str | os.PathLike[str]) -> None:
    """Write a network to exactly this path, replacing what is there only once the new file is complete."""
    parts = {
        "hidden": net.hidden,
        "bias": net.bias,
        "output": net.output,
        "offset": np.array(net.offset, dtype=net.dtype),
        "activation": np.array(str(net.activation)),
    }
    _archive.write(path, FORMAT, VERSION, parts)


def load(path: str | os.PathLike[str]) -> TwoLayer:
    """The network that `save` wrote to this path, equal in every bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, was not written by fewfire, or comes from a newer version of it.
    """
    source, arrays = _archive.read(path, FORMAT, VERSION, _FIELDS, "net.save")
    if arrays["hidden"].dtype.kind != "f" or arrays["offset"].shape != () or arrays["activation"].dtype.kind != "U":
        raise _archive.unreadable(source, "its arrays have the wrong type", _AGAIN)
    try:
        return TwoLayer(
            arrays["hidden"], arrays["bias"], arrays["output"], float(arrays["offset"]), str(arrays["activation"])
        )
    except (InvalidArgument, TypeError, ValueError) as error:
        raise _archive.unreadable(source, f"its arrays do not fit together ({error})", _AGAIN) from error
