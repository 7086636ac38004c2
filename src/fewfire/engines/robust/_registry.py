"""Choosing a trainer by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._extension import core
from fewfire._validate import check_choice
from fewfire.engines.robust._dense import DenseTrainer
from fewfire.engines.robust._lists import ListTrainer

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray
    from fewfire.engines.robust._protocol import ActiveTrainer
    from fewfire.networks import TwoLayer

TRAINERS: dict[str, Callable[..., ActiveTrainer]] = {"dense": DenseTrainer, "lists": ListTrainer}
"""Classes by name, each made as `Trainer(net, X, reach, *, threads=None, debug=False)`."""


def trainer(
    method: str, net: TwoLayer, X: AnyArray, reach: float, *, threads: int | None = None, debug: bool = False
) -> ActiveTrainer:
    """A trainer of the named method; without the C++ part "dense" stands in for "lists", with one warning.

    Parameters
    ----------
    method : a name of TRAINERS
    net, X, reach, threads, debug : as in `ActiveTrainer`
    """
    name = check_choice("method", method, TRAINERS)
    if name == "lists" and core() is None:
        name = "dense"
    return TRAINERS[name](net, X, reach, threads=threads, debug=debug)
