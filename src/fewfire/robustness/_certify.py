"""Certificates: a margin that no adversary of radius ρ can go below, whatever it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fewfire._blas import calm_products
from fewfire._errors import invalid
from fewfire._progress import Bar, told
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.robustness._adapter import adapter_of
from fewfire.robustness._attack import BLOCK, choose_threat
from fewfire.robustness._bounds import BOUNDS, lower_bounds, neuron_ranges, on_shared_neurons
from fewfire.robustness._branch import BranchSearch
from fewfire.robustness._refine import LARGEST, Pairs, RowBlock, refine
from fewfire.robustness._threats import check_within

if TYPE_CHECKING:
    from fewfire._progress import Told
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._bounds import ReluNetwork
    from fewfire.robustness._refine import RefineMethod
    from fewfire.robustness._threats import Norm, Threat

CertifyMethod: TypeAlias = Literal["auto", "linear", "alpha", "sdp", "branch"]
METHODS = ("auto", "linear", "alpha", "sdp", "branch")


@dataclass(frozen=True, eq=False)
class Certificate:
    """Lower bounds on the margin over the adversary's set, and values it can reach.

    Parameters
    ----------
    margin : array of shape (rows,)
        As in `AttackResult`, and never above what any attack can reach, up to the rounding of float64.
    bound : array of str of shape (rows,)
        Which bound was the best: by fixed lines "interval", "pattern", "relaxed" or "floor"; by chosen lines "alpha";
        by parabolas "sdp"; by cases "branch".
    open_neurons : int array of shape (rows,)
        Neurons that may be active or not within the set; where there is none the bound is exact.
    upper : array of shape (rows,)
        The least margin met on the way, at points of the set: the worst margin lies between the two.
    nodes : int array of shape (rows,)
        Of branch and bound.
    """

    margin: Float64Array
    bound: AnyArray
    open_neurons: AnyArray
    upper: Float64Array
    nodes: AnyArray

    @property
    def robust(self) -> AnyArray:
        """Whether the margin is proved positive, shape (rows,): no attack changes the class."""
        return self.margin > 0.0

    @property
    def accuracy(self) -> float:
        """Share of rows that are proved robust: a lower bound on the accuracy under any attack."""
        return float(np.mean(self.robust))

    @property
    def decided(self) -> AnyArray:
        """Whether it is known that the class can or cannot be changed, shape (rows,)."""
        return self.robust | (self.upper <= 0.0)

    @property
    def gap(self) -> Float64Array:
        """What is left between the margin met and the margin proved, shape (rows,)."""
        return np.maximum(self.upper - self.margin, 0.0)


def certify(
    model: Any,
    X: object,
    y: object,
    rho: float | None = None,
    norm: Norm | None = None,
    *,
    bounds: Any = None,
    method: CertifyMethod = "auto",
    nodes: int = 200,
    tight: bool = False,
    gap: float = 1e-3,
    progress: bool | Told | None = None,
) -> Certificate:
    """Prove a lower bound on the margin of each row within ρ of it.

    For classifiers the margin is y·f (two classes) or the true score less the largest other; for regressors −|f − y|.
    Linear models and networks of one hidden layer with a ReLU or shifted ReLU only.

    Parameters
    ----------
    model, X, y, rho, norm, bounds
        As in `attack`.
    method : "auto", "linear", "alpha", "sdp" or "branch"
        How far to go where the method before leaves a row open: lines fixed beforehand; lines chosen by optimisation
        (α-CROWN); parabolas (the semidefinite relaxation), which take a factorisation of order of the inputs per step;
        branch and bound, complete where the nodes last. "auto" is "sdp" up to 512 inputs and "alpha" beyond.
    nodes : int
        The most that branch and bound looks at per row and rival class.
    tight : bool
        Improve every margin as far as the method goes. Otherwise a classifier's row is left as soon as its margin is
        proved positive, or a point has been met where it is not. Regressors' margins have no sign and are always
        improved.
    gap : float
        Margins proved to this much of the least one met are as good as exact.
    progress : bool or callable (done, total)
        True shows one bar, in a notebook or on standard error; a callable is told the rows that are done.

    Examples
    --------
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> model = LogisticRegression().fit(X, y)
    >>> proved = ff.certify(model, X, y, rho=0.2).robust
    >>> bool(proved.mean() <= ff.robust_score(model, X, y, rho=0.2))  # what is proved, no attack breaks
    True
    """
    adapter = adapter_of(model, X, y)
    networks = adapter.scores.relu_networks()
    if networks is None:
        rule = "must be linear or have one hidden layer of relu neurons to be certified"
        raise invalid("model", rule, f"a {type(model).__name__}", "use attack, whose margins are upper bounds")
    check_choice("method", method, METHODS)
    decide = adapter.classes is not None and not tight
    search = BranchSearch(check_integer("nodes", nodes, 1), check_number("gap", gap, 0.0), decide)
    table = adapter.check_rows(X)
    labels, threat = adapter.labels(y, len(table)), choose_threat(adapter, rho, norm, bounds)
    check_within(table, threat)
    points, shared = adapter.points(table), on_shared_neurons(networks)
    width = len(shared[0].bias)
    rows = max(1, BLOCK // (4 * max(1, width)))
    way = ("sdp" if points.shape[1] <= LARGEST else "alpha") if method == "auto" else method
    seen = CertifyProgress(len(points), told(progress, "certify: row"))
    parts = []
    with calm_products(min(rows, len(points)) * width * adapter.scores.inputs):
        for start in range(0, len(points), rows):
            part = np.arange(start, min(start + rows, len(points)))
            known = _known(adapter, shared, points[part], labels[part], threat.take(part))
            parts.append(_certified(*known, None if way == "linear" else way, search, seen))
            seen.pass_over(len(part))
    return Certificate(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class CertifyProgress:
    """Shows how many rows are done, as one bar; of those in work, how many are open and how many decided."""

    def __init__(self, rows: int, listener: Told | None) -> None:
        self.rows, self.passed, self.listener = rows, 0, listener

    def tell(self, left: int, decided: int) -> None:
        """A state inside a block of rows."""
        if isinstance(self.listener, Bar):
            self.listener(self.passed, self.rows, f"{decided} of this block decided, {left} open")

    def pass_over(self, rows: int) -> None:
        """A block of rows is done."""
        self.passed += rows
        if self.listener is not None:
            self.listener(self.passed, self.rows)


def _known(
    adapter: ModelAdapter, shared: tuple[ReluNetwork, ...], points: Float64Array, labels: AnyArray, threat: Threat
) -> tuple[RowBlock, Pairs]:
    """Bounds by fixed lines of all functions that bound the margin: f or −f, the error on either side, f_y − f_j."""
    everyone = np.arange(len(points))
    tasks: list[tuple[AnyArray, ReluNetwork, AnyArray]] = []
    if adapter.classes is None:
        tasks += [(everyone, shared[0], -labels), (everyone, -shared[0], labels)]
    elif len(shared) == 1:
        tasks += [(everyone[labels > 0], shared[0], np.zeros(len(points)))]
        tasks += [(everyone[labels < 0], -shared[0], np.zeros(len(points)))]
    else:
        tasks += [
            (everyone[labels == own], shared[own] - second, np.zeros(len(points)))
            for own in np.unique(labels)
            for other, second in enumerate(shared)
            if other != own
        ]
    ranges = neuron_ranges(shared[0], points, threat)
    columns: list[tuple[AnyArray, ...]] = []
    for k, (chosen, net, constant) in enumerate(tasks):
        used = np.flatnonzero(net.output)
        table, still_open = lower_bounds(
            net.of_neurons(used), points[chosen], threat.take(chosen), ranges.take(chosen, used)
        )
        names = np.array(BOUNDS, dtype=object)[table.argmax(axis=0)]
        lower, index = table.max(axis=0) + constant[chosen], np.full(len(chosen), k)
        columns.append((chosen, index, constant[chosen], lower, names, still_open, np.zeros(len(chosen), dtype=int)))
    pairs = Pairs(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    return RowBlock(tuple(net for _, net, _ in tasks), points, ranges, threat), pairs


def _certified(
    block: RowBlock, pairs: Pairs, method: RefineMethod | None, search: BranchSearch, seen: CertifyProgress
) -> tuple[AnyArray, ...]:
    """The columns of a Certificate."""
    rows = len(block.points)
    upper = np.full(rows, np.inf)
    for k, net in enumerate(block.functions):
        chosen = pairs.function == k
        np.minimum.at(upper, pairs.row[chosen], net(block.points[pairs.row[chosen]]) + pairs.constant[chosen])

    def lowest() -> Float64Array:
        margin = np.full(rows, np.inf)
        np.minimum.at(margin, pairs.row, pairs.lower)
        return margin

    def progress() -> None:
        decided = int(np.sum((lowest() > 0.0) | (upper <= 0.0)))
        seen.tell(rows - decided, decided)

    if method is not None:
        refine(block, pairs, upper, method, search, progress)
    margin, worst = lowest(), np.zeros(rows, dtype=np.int64)
    order = np.argsort(-pairs.lower, kind="stable")
    worst[pairs.row[order]] = order  # the last to be written is the lowest pair of its row
    undecided, nodes = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    np.maximum.at(undecided, pairs.row, pairs.undecided)
    np.add.at(nodes, pairs.row, pairs.nodes)
    return margin, pairs.bound[worst].astype(str), undecided, upper, nodes
