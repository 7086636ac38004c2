"""Networks in files: a safe archive (`fewfire._archive`) of the five parts of a network.

Version 1 holds one output, `output` of shape (width,) and `offset` of shape (). Version 2 adds networks of several
outputs, of shapes (width, outputs) and (outputs,). A network of one output is still written as version 1, which every
version of fewfire reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire import _archive
from fewfire._errors import InvalidArgument
from fewfire.networks._two_layer import TwoLayer

if TYPE_CHECKING:
    import os

FORMAT: Final = "fewfire.networks.TwoLayer"
VERSION: Final = 2
_FIELDS: Final = ("hidden", "bias", "output", "offset", "activation")
_AGAIN: Final = "write it again with network.save"


def save(network: TwoLayer, path: str | os.PathLike[str]) -> None:
    """Write a network to exactly this path, replacing what is there only once the new file is complete.

    Examples
    --------
    >>> import fewfire as ff
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> network = ff.networks.init.sparse(2)(10, width=20, seed=0)
    >>> with TemporaryDirectory() as folder:
    ...     ff.networks.save(network, Path(folder) / "network.npz")
    ...     again = ff.networks.load(Path(folder) / "network.npz")
    >>> again.equals(network)
    True
    """
    parts = {
        "hidden": network.hidden,
        "bias": network.bias,
        "output": network.output,
        "offset": np.array(network.offset, dtype=network.dtype),
        "activation": np.array(str(network.activation)),
    }
    _archive.write(path, FORMAT, 1 if network.output.ndim == 1 else VERSION, parts)


def load(path: str | os.PathLike[str]) -> TwoLayer:
    """The network that `save` wrote to this path, equal in every bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, was not written by fewfire, or comes from a newer version of it.

    Examples
    --------
    >>> import fewfire as ff
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ff.networks.init.dense()(10, width=20, seed=0).save(Path(folder) / "network.npz")
    ...     network = ff.networks.load(Path(folder) / "network.npz")
    >>> network
    TwoLayer(inputs=10, width=20, activation=relu, dtype=float32)
    """
    source, arrays = _archive.read(path, FORMAT, VERSION, _FIELDS, "network.save")
    hidden, output, offset = (arrays[part] for part in ("hidden", "output", "offset"))
    name = _archive.text(arrays["activation"])
    if hidden.dtype.kind != "f" or offset.shape != output.shape[1:] or name is None:
        raise _archive.unreadable(source, "its arrays have the wrong type", _AGAIN)
    try:
        return TwoLayer(hidden, arrays["bias"], output, offset if offset.ndim else float(offset), name)
    except (InvalidArgument, TypeError, ValueError) as error:
        raise _archive.unreadable(source, f"its arrays do not fit together ({error})", _AGAIN) from error
