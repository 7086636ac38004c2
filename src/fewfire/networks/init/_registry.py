"""Initialisers by name, for specs and files: `from_parameters(i.name, i.parameters()) == i`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from fewfire._errors import invalid
from fewfire._validate import check_choice
from fewfire.networks.init._dense import dense
from fewfire.networks.init._ntk import ntk
from fewfire.networks.init._sparse import over_sparse, perturbed_sparse, sparse, under_sparse
from fewfire.networks.init._symmetric import symmetric

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fewfire.networks.init._base import Initialiser

_FACTORIES: Final[dict[str, Callable[..., Initialiser]]] = {
    factory.__name__: factory
    for factory in (dense, sparse, perturbed_sparse, symmetric, over_sparse, under_sparse, ntk)
}

NAMES: Final = tuple(_FACTORIES)
"""The names that `from_parameters` knows."""


def from_parameters(name: str, parameters: Mapping[str, Any] | None = None) -> Initialiser:
    """The initialiser of that name with these parameters, as a spec file holds them.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.networks.init.from_parameters("sparse", {"s": 2})
    sparse(s=2, value=1.0)
    """
    factory = _FACTORIES[check_choice("init", name, _FACTORIES)]
    given = dict(parameters or {})
    try:
        inspect.signature(factory).bind(**given)
    except TypeError as error:
        takes = ", ".join(inspect.signature(factory).parameters) or "no parameters"
        raise invalid(f"init {name!r}", f"takes {takes}", sorted(given), str(error)) from None
    return factory(**given)
