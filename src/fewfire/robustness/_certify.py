"""Certificates: a margin that no adversary of radius ρ can go below, whatever it does.

Cheap bounds come first; what fixed lines leave open is attacked, relaxed and branched on. A *pair* is a row and one
function that bounds its margin: f or −f for two classes, the error on either side for a regressor, f_y − f_j for each
other class j, as one function of the neurons they share. Only pairs that can still change what is known of their row
are worked on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

from fewfire._html import card
from fewfire._progress import progress_callback
from fewfire._threads import calm_products
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.robustness._adapter import adapter_of, in_units
from fewfire.robustness._bounds import BOUNDS, check_certifiable, lower_bounds, neuron_ranges
from fewfire.robustness._branch import BranchSearch, branch, descend
from fewfire.robustness._formula import BLOCK
from fewfire.robustness._relaxation import Cells, first_multipliers, improve
from fewfire.robustness._threats import check_within, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fewfire._progress import ProgressCallback
    from fewfire._types import AnyArray, Float64Array
    from fewfire.robustness._adapter import ModelAdapter
    from fewfire.robustness._bounds import NeuronRanges
    from fewfire.robustness._formula import Layers
    from fewfire.robustness._relaxation import Inner, Relaxed
    from fewfire.robustness._threats import Norm, Threat

CertifyMethod: TypeAlias = Literal["auto", "linear", "alpha", "sdp", "branch"]
METHODS: Final = get_args(CertifyMethod)


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
    radius : str
        How far rows may be moved, such as "ℓ₂ 0.3".
    regression : bool
        Whether the margins are errors of a regressor.
    """

    margin: Float64Array
    bound: AnyArray
    open_neurons: AnyArray
    upper: Float64Array
    nodes: AnyArray
    radius: str
    regression: bool

    def __repr__(self) -> str:
        if self.regression:
            proved, met = -self.margin.mean(), -self.upper.mean()
            return f"Certificate: mean error at most {proved:.4g} within {self.radius}, {met:.4g} met"
        proved, rows = int(self.robust.sum()), len(self.margin)
        fooled = int(self.decided.sum()) - proved
        names, counts = np.unique(self.bound[self.robust], return_counts=True)
        by = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        left = f"{fooled} fooled, {rows - proved - fooled} open within {self.radius}"
        return f"Certificate: {proved} of {rows} rows proved{f' ({by})' if by else ''}, {left}"

    def _repr_html_(self) -> str:
        title, _, sentence = repr(self).partition(": ")
        names, counts = np.unique(self.bound[self.robust], return_counts=True)
        return card(title, {"": sentence, **{f"proved by {name}": n for name, n in zip(names, counts, strict=True)}})

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
    rho: Any = None,
    norm: Norm | None = None,
    *,
    units: Literal["std"] | None = None,
    bounds: Any = None,
    fixed: Any = None,
    integers: Any = None,
    onehot: Any = None,
    relations: Any = None,
    method: CertifyMethod = "auto",
    nodes: int = 200,
    tight: bool = False,
    gap: float = 1e-3,
    progress: bool | ProgressCallback | None = None,
) -> Certificate:
    """Prove a lower bound on the margin of each row within ρ of it.

    For classifiers the margin is y·f (two classes) or the true score less the largest other; for regressors −|f − y|.
    Linear models, networks of ReLUs of any depth and of one hidden layer of shifted ReLUs only, also as a Sequential of
    PyTorch and behind scalers, a PCA or a ColumnTransformer of these.

    Parameters
    ----------
    model, X, y, rho, norm, units, bounds, fixed, integers, onehot, relations
        As in `attack`. Bounds hold for whole numbers and one-hot columns too: they are proved for all values between.
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
        True shows one bar, in a notebook or on standard error; a callable gets the rows that are done, or decided.

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
    formula = check_certifiable(adapter.scores, type(model).__name__)
    check_choice("method", method, METHODS)
    decide = adapter.classes is not None and not tight
    search = BranchSearch(check_integer("nodes", nodes, 1), check_number("gap", gap, 0.0), decide)
    table = adapter.check_rows(X)
    limits = {"fixed": fixed, "integers": integers, "onehot": onehot, "relations": relations}
    labels, threat = adapter.labels(y, len(table)), adapter.adversary(in_units(rho, units, X), norm, bounds, **limits)
    check_within(table, threat)
    points, width = adapter.points(table), formula.width
    later = (part.shape[1] * max(len(part), formula.inputs) for part in formula.weights[1:-1])  # lines of a row
    rows = max(1, BLOCK // (4 * max(1, width, *later)))
    way = ("sdp" if points.shape[1] <= LARGEST else "alpha") if method == "auto" else method
    listener, parts = progress_callback(progress, "certify: row"), []
    with calm_products(min(rows, len(points)) * width * adapter.scores.inputs):
        for start in range(0, len(points), rows):
            part = np.arange(start, min(start + rows, len(points)))

            def report(decided: int, start: int = start) -> None:
                if listener is not None:
                    listener(start + decided, len(points))

            known = _known(adapter, formula, points[part], labels[part], threat.take(part))
            parts.append(_certified(*known, None if way == "linear" else way, search, report))
            report(len(part))
    margin, bound, still_open, upper, looked_at = (np.concatenate(column) for column in zip(*parts, strict=True))
    regression = adapter.classes is None
    return Certificate(margin, bound, still_open, upper, looked_at, shown(threat), regression)


def _known(
    adapter: ModelAdapter, formula: Layers, points: Float64Array, labels: AnyArray, threat: Threat
) -> tuple[Any, Pairs]:
    """Bounds by fixed lines of all functions that bound the margin: f or −f, the error on either side, f_y − f_j."""
    all_rows, none, heads = np.arange(len(points)), np.zeros(len(points)), np.eye(len(formula.biases[-1]))
    tasks: list[tuple[AnyArray, Float64Array, AnyArray]] = []  # rows, weights of the scores, constants
    if adapter.classes is None:
        tasks += [(all_rows, heads[0], -labels), (all_rows, -heads[0], labels)]
    elif len(heads) == 1:
        tasks += [(all_rows[labels > 0], heads[0], none), (all_rows[labels < 0], -heads[0], none)]
    else:
        tasks += [
            (all_rows[labels == own], heads[own] - second, none)
            for own in np.unique(labels)
            for other, second in enumerate(heads)
            if other != own
        ]
    functions = tuple(formula.combination(weights) for _, weights, _ in tasks)
    block: Any
    if len(formula.weights) > 2:
        from fewfire.robustness._deep import DeepBlock

        block = DeepBlock(formula, functions, points, threat)
    else:
        block = RowBlock(functions, points, neuron_ranges(formula, points, threat), threat)
    columns: list[tuple[AnyArray, ...]] = []
    for k, (chosen, _, constant) in enumerate(tasks):
        table, still_open = block.lower_bounds(k, chosen)
        names = np.array(BOUNDS, dtype=object)[table.argmax(axis=0)]
        lower, index = table.max(axis=0) + constant[chosen], np.full(len(chosen), k)
        columns.append((chosen, index, constant[chosen], lower, names, still_open, np.zeros(len(chosen), dtype=int)))
    return block, Pairs(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _certified(
    block: Any, pairs: Pairs, method: RefineMethod | None, search: BranchSearch, report: Callable[[int], None]
) -> tuple[AnyArray, ...]:
    """The columns of a Certificate; `report` gets the number of rows that are decided."""
    rows = len(block.points)
    upper = np.full(rows, np.inf)
    for k, net in enumerate(block.functions):
        chosen = pairs.function == k
        row = pairs.row[chosen]
        np.minimum.at(upper, row, net.scores(block.points[row])[:, 0] + pairs.constant[chosen])

    def lowest() -> Float64Array:
        margin = np.full(rows, np.inf)
        np.minimum.at(margin, pairs.row, pairs.lower)
        return margin

    for _ in () if method is None else block.refine(pairs, upper, method, search):
        report(int(np.sum((lowest() > 0.0) | (upper <= 0.0))))
    margin, worst = lowest(), np.zeros(rows, dtype=np.int64)
    order = np.argsort(-pairs.lower, kind="stable")
    worst[pairs.row[order]] = order  # the last to be written is the lowest pair of its row
    undecided, nodes = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    np.maximum.at(undecided, pairs.row, pairs.undecided)
    np.add.at(nodes, pairs.row, pairs.nodes)
    return margin, pairs.bound[worst].astype(str), undecided, upper, nodes


RefineMethod: TypeAlias = Literal["alpha", "sdp", "branch"]
LARGEST: Final = 512  # inputs up to which "auto" tries parabolas: every step factorises a matrix of this order
CELLS: Final = 1 << 21  # weights of all cells relaxed at once, which bounds the memory
ATTACK_STEPS: Final = 20
SCHEDULE: Final = {"alpha": ((60, 0.1),), "sdp": ((80, 0.2), (160, 0.05))}
"""Iterations of Adam and their rate, one after the other, as long as a cell is open."""


@dataclass(eq=False)
class Pairs:
    """What is known of pairs: arrays of shape (pairs,)."""

    row: AnyArray
    function: AnyArray
    constant: Float64Array  # added to the function
    lower: Float64Array  # proved, by `bound`
    bound: AnyArray
    undecided: AnyArray  # open neurons
    nodes: AnyArray  # of branch and bound


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows, functions of them that share their neurons, and the ranges of these neurons."""

    functions: tuple[Layers, ...]  # of one score each
    points: Float64Array  # (rows, d)
    ranges: NeuronRanges
    threat: Threat

    def lower_bounds(self, function: int, rows: AnyArray) -> tuple[Float64Array, AnyArray]:
        """What `lower_bounds` gives for some rows of a function."""
        net = self.functions[function]
        used = np.flatnonzero(net.output)
        ranges = self.ranges.take(rows, used)
        return lower_bounds(net.of_neurons(used), self.points[rows], self.threat.take(rows), ranges)

    def refine(self, pairs: Pairs, upper: Float64Array, method: RefineMethod, search: BranchSearch) -> Iterator[None]:
        """Improve the bounds of pairs and `upper`, the least values met per row (rows,), in place, part by part."""
        return refine(self, pairs, upper, method, search)

    def cells(self, pairs: Pairs, chosen: AnyArray) -> Cells:
        """The problems of some pairs, sure neurons taken into the slope."""
        row, constant, ranges, tau = pairs.row[chosen], pairs.constant[chosen], self.ranges, self.functions[0].threshold
        networks = [self.functions[k] for k in pairs.function[chosen]]
        sure, resting = ranges.low[row] > tau, ranges.high[row] <= tau
        neurons = [
            np.flatnonzero((net.output != 0.0) & ~decided)
            for net, decided in zip(networks, sure | resting, strict=True)
        ]
        shape = (len(row), max(map(len, neurons), default=0))
        weights, slope = np.zeros((*shape, self.points.shape[1])), np.zeros((len(row), self.points.shape[1]))
        output, centre, low, high = (np.zeros(shape) for _ in range(4))
        silent, active = np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool)
        centre -= 1.0  # what pads is silent and cannot move
        value, size = np.zeros(len(row)), np.zeros(len(row))  # without open neurons, and the terms that were added up
        for k, (i, net, chosen_neurons) in enumerate(zip(row, networks, neurons, strict=True)):
            n, gain = len(chosen_neurons), np.where(sure[k], net.output, 0.0)
            value[k], slope[k] = float(gain @ ranges.centre[i]) + net.offset, gain @ net.hidden
            size[k] = float(np.abs(net.output[~resting[k]]) @ ranges.terms[i, ~resting[k]]) + abs(net.offset)
            if net.linear is not None:
                value[k] += float(net.linear @ self.points[i])
                slope[k] += net.linear
                size[k] += float(np.abs(net.linear) @ np.abs(self.points[i]))
            weights[k, :n], output[k, :n] = net.hidden[chosen_neurons], net.output[chosen_neurons]
            centre[k, :n] = ranges.centre[i, chosen_neurons]
            low[k, :n], high[k, :n] = (end[i, chosen_neurons] - centre[k, :n] for end in (ranges.low, ranges.high))
            active[k, :n] = True
        rest = weights, output, centre, low, high, silent, active, size + np.abs(constant), tau
        return make_cells(self.threat, self.points, row, value + constant, slope, *rest)


def make_cells(
    threat: Threat, points: Float64Array, row: AnyArray, value: Float64Array, slope: Float64Array, *rest: Any
) -> Cells:
    """Cells with the box and the ball of a threat; columns that cannot move have no weights.

    `rest` is the cells' weights, output, centre, low, high, silent, active, size and, unless 0, τ.
    """
    weights, output, centre, low, high, silent, active, size, *threshold = rest
    down, up = threat.take(row).span(np.eye(points.shape[1]), points[row])
    down, up = np.minimum(down, 0.0) * (1 + 1e-12), np.maximum(up, 0.0) * (1 + 1e-12)
    movable, radius = up > down, np.full(len(row), threat.reach(points.shape[1]) * (1 + 1e-12))
    lines, moving = slope * movable, weights * movable[:, None, :]
    tau = np.full(len(row), *(threshold or (0.0,)))
    return Cells(row, value, lines, moving, output, centre, low, high, silent, active, tau, down, up, radius, size)


def least_linear(threat: Threat, points: Float64Array) -> Inner:
    """The exact minimum of linear functions over the threat, and where it is."""

    def least(weights: Float64Array, row: AnyArray) -> tuple[Float64Array, Float64Array]:
        centres, around = points[row], threat.take(row)
        return around.row_span(weights, centres)[0], around.extreme(-weights, centres) - centres

    return least


def refine(
    block: RowBlock, pairs: Pairs, upper: Float64Array, method: RefineMethod, search: BranchSearch
) -> Iterator[None]:
    lines = least_linear(block.threat, block.points)
    for part in _parts(block, pairs, matters(pairs, np.arange(len(pairs.row)), upper, search), 256):
        cells = block.cells(pairs, part)
        met = descend(cells, block.points, block.threat, np.zeros_like(cells.down), ATTACK_STEPS)
        np.minimum.at(upper, cells.row, met)
    for part in _parts(block, pairs, matters(pairs, np.arange(len(pairs.row)), upper, search), 64):
        chosen = matters(pairs, part, upper, search)
        if chosen.size:
            cells = block.cells(pairs, chosen)
            curved = method == "sdp" or (method != "alpha" and cells.down.shape[1] <= LARGEST)
            relaxed: Relaxed | None = None  # of every cell, the last one
            for name in ("alpha", "sdp")[: 1 + curved]:
                relaxed, now = None, np.arange(len(cells))
                for iterations, rate in SCHEDULE[name]:
                    some = cells.take(now)
                    start = first_multipliers(some) if relaxed is None else relaxed.take(now)
                    enough = np.array([search.enough(float(upper[row])) for row in some.row])
                    found = improve(some, start, iterations, rate, enough, lines if name == "alpha" else None)
                    np.minimum.at(upper, some.row, descend(some, block.points, block.threat, found.move, 5))
                    enter(pairs, chosen[now], found.bound, name)
                    relaxed = found if relaxed is None else relaxed.put(now, found)
                    now = np.flatnonzero(np.isin(chosen, matters(pairs, chosen, upper, search)))
                    if not now.size:
                        break
            assert relaxed is not None
            relaxed = replace(relaxed, bound=pairs.lower[chosen])
            left = np.isin(chosen, matters(pairs, chosen, upper, search))
            if method == "branch" and left.any():
                cells, relaxed = cells.take(left), relaxed.take(left)
                lower, least, used = branch(
                    cells, relaxed, upper[cells.row], block.points, block.threat, search, lines, curved=curved
                )
                enter(pairs, chosen[left], lower, "branch")
                pairs.nodes[chosen[left]] = used
                np.minimum.at(upper, cells.row, least)
        yield


def _parts(block: RowBlock, pairs: Pairs, chosen: AnyArray, count: int) -> list[AnyArray]:
    """Pairs with similar numbers of open neurons together, `count` at a time or as many as memory allows."""
    order = chosen[np.argsort(pairs.undecided[chosen], kind="stable")]
    parts, end = [], len(order)
    while end > 0:  # from the largest, which decides how many fit
        fit = CELLS // max(1, block.points.shape[1] * int(pairs.undecided[order[end - 1]]))
        start = max(0, end - max(1, min(count, fit)))
        parts.append(order[start:end])
        end = start
    return parts[::-1]


def enter(pairs: Pairs, chosen: AnyArray, lower: Float64Array, name: str) -> None:
    better = lower > pairs.lower[chosen]
    pairs.lower[chosen[better]], pairs.bound[chosen[better]] = lower[better], name


def matters(pairs: Pairs, chosen: AnyArray, upper: Float64Array, search: BranchSearch) -> AnyArray:
    """Those of the chosen pairs of which a better bound could change what is known of their row."""
    lower, least = pairs.lower[chosen], upper[pairs.row[chosen]]
    open_pairs = (pairs.undecided[chosen] > 0) & (least - lower > search.gap)
    if search.decide:
        open_pairs &= (lower <= 0.0) & (least > 0.0)
    return chosen[open_pairs]
