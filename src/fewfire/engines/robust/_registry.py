"""Choosing a trainer by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from fewfire._errors import invalid
from fewfire._extension import core
from fewfire._types import AnyArray
from fewfire._validate import check_choice
from fewfire.engines.robust._index import IndexTrainer
from fewfire.engines.robust._lists import ListTrainer
from fewfire.engines.robust._trainer import ActiveTrainer, DenseTrainer
from fewfire.halfspace._methods import MethodName
from fewfire.networks import TwoLayer

TrainerMethod: TypeAlias = Literal["auto", "dense", "lists", "index"]

TRAINERS: dict[str, Callable[..., ActiveTrainer]] = {
    kind.name: kind for kind in (DenseTrainer, ListTrainer, IndexTrainer)
}
"""Classes by name, each made as `Trainer(network, X, reach, *, threads=None)`."""


def trainer(
    method: TrainerMethod,
    network: TwoLayer,
    X: AnyArray,
    reach: float,
    *,
    threads: int | None = None,
    index_method: MethodName | str = "auto",
) -> ActiveTrainer:
    """A trainer of the named method; without the C++ part "dense" replaces "lists", with one warning.

    Parameters
    ----------
    method : a name of TRAINERS, or "auto"
        "auto" takes "dense" when over a quarter of the neurons is active on the anchors (up to 64 of them are tried)
        or the C++ part is missing, "lists" otherwise.
    network, X, reach, threads : as in `ActiveTrainer`
    index_method : as `method` of `fewfire.halfspace.Index`
        How method "index" searches: "tree" as the paper has it, "scan" or "screen" of every neuron, what is measured
        to be fastest ("auto"), or a method that was registered.

    Examples
    --------
    >>> import fewfire as ff
    >>> from fewfire.engines.robust import trainer
    >>> X, y = ff.problems.SphereSlice(n=30, d=8, separation=0.2).sample(30, seed=0)
    >>> network = ff.networks.init.ntk(activity=0.05)(8, width=1000, seed=0)
    >>> training = trainer("lists", network, X, reach=0.1)
    >>> type(training).__name__
    'ListTrainer'
    """
    name = check_choice("method", method, get_args(TrainerMethod))
    if name == "index":
        return IndexTrainer(network, X, reach, threads=threads, index_method=index_method)
    if index_method != "auto":
        raise invalid("index_method", f"must be 'auto' for method={method!r}", index_method, "use method='index'")
    if name == "auto":
        name = "dense" if network.activity(X[:: max(1, -(-len(X) // 64))]).fraction > 0.25 else "lists"
    if name == "lists" and core() is None:
        name = "dense"
    return TRAINERS[name](network, X, reach, threads=threads)
