"""A fitted model as one ONNX graph of standard operators: categories, encodings, networks, trees, their mixture.

Inputs are `X` (rows, columns), float64, NaN where a value is missing, and, where columns are categories of text,
`categories` (rows, columns of text), strings; X then has the other columns. X is float64 as comparisons in `predict`
are: at the edge of a bin or a tree's threshold, a value rounded to float32 may fall on the other side. Two inputs of
fixed names, not one per column, because names of columns may be any text; they are in the metadata.

Between which knots or thresholds a value lies is found by balanced trees in float64 (`_below`). So the model's own
trees compare small whole numbers, and float32 is enough for them, which halves their size. Where a value is missing,
they are shown one below all thresholds, above them, or 0, as the node asks for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fewfire._atomic import write_bytes
from fewfire._dense.network import PeriodicEmbedding
from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._types import AnyArray
from fewfire.tabular._encodings import (
    FARTHEST,
    PLAIN,
    SWING,
    Columns,
    PiecewiseLinearEncoding,
    RankEncoding,
    StandardScaling,
    relevance_gains,
)
from fewfire.tabular._ensemble import Ensemble
from fewfire.tabular._frames import CategoryColumns
from fewfire.tabular._trees import LEAST_PROBABILITY, MergedBooster, TreeModel, tree_texts

ML = "ai.onnx.ml"
OPSETS, IR_VERSION = (("", 18), (ML, 5)), 10
"""onnxruntime 1.21 (2025) and later have them; before version 5 of the second, trees take several times the room."""
ZERO = float(np.float32(1e-35))  # numbers of this size and less are 0 to LightGBM
FIELDS = ("split_feature", "threshold", "decision_type", "left_child", "right_child", "leaf_value")
"""What a tree is made of in LightGBM's text."""


class Graph:
    """Nodes and constants under construction; values are numbered in the order of their nodes."""

    def __init__(self) -> None:
        onnx = require("onnx", "onnx", "export_onnx")
        self._make, self.tensor = onnx.helper, onnx.numpy_helper.from_array
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def __call__(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """The name of the value of an operator; inputs that are no names become constants."""
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        name = f"v{len(self._nodes)}"
        self._nodes.append(self._make.make_node(operator, names, [name], name, domain=domain, **attributes))
        return name

    def cast(self, value: str, dtype: type) -> str:
        """A value in another type."""
        return self("Cast", value, to=self._make.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def input(self, name: str, dtype: type, *shape: int) -> None:
        """Declare an input (rows, …)."""
        self._inputs.append(self._declared(name, dtype, shape))

    def output(self, value: str, name: str, dtype: type, *shape: int) -> None:
        """Declare a value (rows, …) as an output."""
        self._nodes.append(self._make.make_node("Identity", [value], [name]))
        self._outputs.append(self._declared(name, dtype, shape))

    def model(self, metadata: dict[str, Any]) -> Any:
        """The `onnx.ModelProto`."""
        make = self._make
        graph = make.make_graph(self._nodes, "fewfire", self._inputs, self._outputs, self._constants)
        opsets = [make.make_opsetid(*opset) for opset in OPSETS]
        model = make.make_model(graph, producer_name="fewfire", ir_version=IR_VERSION, opset_imports=opsets)
        make.set_model_props(model, {name: json.dumps(value) for name, value in metadata.items()})
        return model

    def _constant(self, value: Any) -> str:
        name, array = f"c{len(self._constants)}", np.asarray(value, order="C")
        self._constants.append(self.tensor(array, name))
        return name

    def _declared(self, name: str, dtype: type, shape: tuple[int, ...]) -> Any:
        kind = self._make.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self._make.make_tensor_value_info(name, kind, ["rows", *shape])


def export(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier or regressor to a file."""
    graph, ensemble = Graph(), estimator._ensemble
    table, metadata = _table(graph, estimator)
    found = _mixture(graph, ensemble, _Inputs(graph, table, ensemble.columns))
    if hasattr(estimator, "classes_"):
        classes = estimator.classes_
        classes = classes.astype(str).astype(object) if classes.dtype.kind in "OU" else classes
        likeliest = graph("ArgMax", found, axis=1, keepdims=0)
        graph.output(graph("Gather", classes, likeliest), "label", classes.dtype)
        graph.output(found, "probabilities", np.float64, len(classes))
        metadata["classes"] = classes.tolist()
    else:
        found = graph("Add", graph("Mul", found, estimator._scale), estimator._centre)
        shape = [len(estimator._scale)] if estimator._columned else []
        graph.output(found if shape else graph("Squeeze", found, [1]), "prediction", np.float64, *shape)
    write_bytes(path, graph.model(metadata).SerializeToString())


def _table(graph: Graph, estimator: Any) -> tuple[str, dict[str, Any]]:
    """The table that encodings see, with numbers instead of categories, and metadata of the inputs."""
    count, codes = estimator.n_features_in_, {} if estimator._reader is None else estimator._reader.codes
    names = [str(name) for name in getattr(estimator, "feature_names_in_", [f"x{index}" for index in range(count)])]
    keys = {index: _keys(codes[index], names[index]) for index in codes}
    texts = [index for index in keys if isinstance(keys[index], list)]
    others = [index for index in range(count) if index not in texts]
    for name, dtype, columns in (("X", np.float64, others), ("categories", object, texts)):
        if columns:
            graph.input(name, dtype, len(columns))
    slots, missing = {}, {}
    for index, given in keys.items():
        of_code, known = estimator._categories.slots[index], estimator._categories.counts[index]
        if isinstance(given, list):
            gap = ""
            while gap in given:
                gap += "?"
            missing[names[index]] = gap
            pairs = {"keys_strings": [*given, gap], "values_int64s": [*of_code.tolist(), known]}
            column = graph("Gather", "categories", texts.index(index), axis=1)
            slots[index] = graph("LabelEncoder", column, domain=ML, default_int64=known + 1, **pairs)
        else:
            tensors = {"keys": given, "values": of_code, "default": np.array([known + 1])}
            column = graph("Gather", "X", others.index(index), axis=1)
            found = graph(
                "LabelEncoder",
                column,
                domain=ML,
                **{f"{name}_tensor": graph.tensor(of) for name, of in tensors.items()},
            )
            slots[index] = graph("Where", graph("IsNaN", column), known, found)
    metadata = {"X": [names[i] for i in others], "categories": [names[i] for i in texts], "missing": missing}
    numbers = [position for position, index in enumerate(others) if index not in codes]
    return _with_categories(graph, estimator._categories, slots, numbers) if codes else "X", metadata


def _keys(codes: dict[Any, int], name: str) -> list[str] | AnyArray:
    """Categories by which a column is read: numbers if all are, otherwise text."""
    numeric = len(codes) > 0 and all(isinstance(value, int | float) for value in codes)
    keys = [float(value) if numeric else str(value) for value in codes]
    if len(set(keys)) < len(keys):
        rule, got = "needs categories that differ as text, or as float64", f"a pair alike in column {name!r}"
        raise invalid("export_onnx", rule, got, "turn the column into text before the fit")
    return np.array(keys) if numeric else [str(key) for key in keys]


def _with_categories(graph: Graph, categories: CategoryColumns, slots: dict[int, str], numbers: list[int]) -> str:
    """Numbers, what each column of categories becomes, pairs: `CategoryColumns.transform`."""
    parts = [graph("Gather", "X", np.array(numbers), axis=1)] if numbers else []
    for index, count in categories.counts.items():
        many = index in categories.statistics
        of_slot = categories.statistics[index] if many else categories.indicators(index, np.arange(count + 2))
        parts.append(graph("Gather", of_slot, slots[index], axis=0))
    for pair, factors in categories.pairs.items():
        both = (graph("Gather", of, slots[index], axis=0) for index, of in zip(pair, factors, strict=True))
        parts.append(graph("Mul", *both))
    return graph("Concat", *parts, axis=1)


class _Inputs:
    """Inputs (rows, inputs), float32, by name of their encoding: those of `EncodedTable`."""

    def __init__(self, graph: Graph, table: str, columns: Columns) -> None:
        self.graph, self.columns = graph, columns
        self._values = graph("Gather", table, columns.used, axis=1)
        self._missing = graph("IsNaN", self._values)
        self._filled = graph("Where", self._missing, columns.medians, self._values)
        self._found: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._found:
            self._found[name] = self._encode(name)
        return self._found[name]

    def raw(self) -> str:
        """What trees see (rows, used), float64."""
        return self.graph("Sub", self._values, self.columns.offsets)

    def _encode(self, name: str) -> str:
        encoding: Any = self.columns.plain if name == PLAIN else self.columns.encodings[name]
        if type(encoding) is PeriodicEmbedding:
            return self[PLAIN]
        known = {StandardScaling: self._standard, RankEncoding: self._ranks, PiecewiseLinearEncoding: self._bins}
        if type(encoding) not in known:
            got = f"a {type(encoding).__name__} for {name!r}"
            raise invalid("export_onnx", "exports the encodings that fewfire has", got, "fit with scaling='auto'")
        if not len(self.columns.used):  # one input, 0
            rows = self.graph("Shape", self._values, start=0, end=1)
            return self.graph("Expand", np.zeros((1, 1), np.float32), self.graph("Concat", rows, [1], axis=0))
        encoded = known[type(encoding)](encoding)
        if encoding.added:
            return self.graph("Concat", self[PLAIN], self.graph.cast(encoded, np.float32), axis=1)
        flags = self.graph("Gather", self._missing, np.flatnonzero(self.columns.flagged), axis=1)
        parts = [self.graph.cast(part, np.float32) for part in (encoded, flags)]
        return self.graph("Concat", *parts, axis=1) if self.columns.flagged.any() else parts[0]

    def _standard(self, encoding: StandardScaling) -> str:
        graph = self.graph
        scaled = graph("Div", graph("Sub", self._filled, encoding.mean_), encoding.scale_)
        scaled = graph("Clip", scaled, -FARTHEST, FARTHEST)
        if encoding.clip is None:
            return scaled
        part = graph("Div", scaled, float(encoding.clip))
        return graph("Div", scaled, graph("Sqrt", graph("Add", graph("Mul", part, part), 1.0)))

    def _ranks(self, encoding: RankEncoding) -> str:
        graph = self.graph
        knots = [np.array(pair if len(pair[0]) > 1 else np.repeat(pair, 2, axis=1)) for pair in encoding.knots_]
        inner = [np.nextafter(values[1:-1], -np.inf) for values, _ in knots]  # smaller, or the knot itself
        starts = np.cumsum([0, *(len(values) - 1 for values, _ in knots)])[:-1]
        at = graph("Add", graph.cast(_below(graph, self._filled, inner), np.int64), starts)
        halves = [values / 2 for values, _ in knots]  # their differences do not overflow
        widths = np.maximum(np.concatenate([np.diff(half) for half in halves]), np.nextafter(0.0, 1.0))
        lows = graph("Gather", np.concatenate([half[:-1] for half in halves]), at)
        progress = self._progress(self._filled, lows, graph("Gather", widths, at))
        first = graph("Gather", np.concatenate([quantiles[:-1] for _, quantiles in knots]), at)
        steps = graph("Gather", np.concatenate([np.diff(quantiles) for _, quantiles in knots]), at)
        return graph("Add", first, graph("Mul", progress, steps))

    def _bins(self, encoding: PiecewiseLinearEncoding) -> str:
        lows, highs = (
            np.concatenate([edges[part] / 2 for edges in encoding.edges_]) for part in (np.s_[:-1], np.s_[1:])
        )
        values = self.graph("Gather", self._filled, encoding.sources(), axis=1)
        progress = self._progress(values, lows, highs - lows)
        return self.graph("Sub", self.graph("Mul", progress, 2 * SWING), SWING)

    def _progress(self, values: str, lows: Any, widths: Any) -> str:
        """How far halves of values have come through intervals, from 0 to 1."""
        graph = self.graph
        return graph("Clip", graph("Div", graph("Sub", graph("Mul", values, 0.5), lows), widths), 0.0, 1.0)


class _Trees:
    """Trees whose nodes (column, threshold, left, right) go left where a column is at most the threshold.

    Children are numbers of nodes, or ~leaf where negative. A leaf (target, value) adds its value to a target.
    """

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.nodes: Any = []
        self.leaves: list[tuple[int, float]] = []

    def grow(self, column: int, thresholds: AnyArray) -> None:
        """A balanced tree that adds to target `column` how many of its thresholds, ascending, are below a value."""
        self.roots.append(len(self.nodes))
        if len(thresholds):
            self._grown(column, thresholds, 0, len(thresholds))
        else:
            self.constant(column, 0.0)

    def constant(self, target: int, value: float) -> None:
        """Add a tree of one node, as there must be one, and two leaves: before 1.24 onnxruntime errs with one."""
        self.nodes.append((0, 0.0, ~len(self.leaves), ~len(self.leaves) - 1))
        self.leaves += [(target, value)] * 2

    def sums(self, graph: Graph, table: str, targets: int, dtype: type) -> str:
        """What the leaves of rows add up to (rows, targets), in the type of the table."""
        (column, threshold, *ways), leaves = np.array(self.nodes).T, np.array(self.leaves)
        left, right = np.array(ways, int)
        # Before 1.24, onnxruntime errs where a node and a leaf of one number are the children of a node: k + ~k = -1.
        number = np.arange(len(leaves))
        for leaf in np.sort(np.maximum(left, right)[left + right == -1]):
            if number[leaf] == leaf:
                number[[leaf, leaf + 1]] = number[[leaf + 1, leaf]]
        target, value = leaves[np.argsort(number)].T
        attributes: dict[str, Any] = {"tree_roots": self.roots, "nodes_featureids": column.astype(int).tolist()}
        for side, child in (("true", left), ("false", right)):
            attributes[f"nodes_{side}leafs"] = (child < 0).astype(int).tolist()
            attributes[f"nodes_{side}nodeids"] = np.where(child < 0, number[~child], child).tolist()
        attributes["leaf_targetids"] = target.astype(int).tolist()
        arrays = {"nodes_splits": threshold.astype(dtype), "leaf_weights": value.astype(dtype)}
        arrays["nodes_modes"] = np.zeros(len(column), np.uint8)
        attributes |= {name: graph.tensor(array) for name, array in arrays.items()}
        return graph("TreeEnsemble", table, domain=ML, n_targets=targets, **attributes)

    def _grown(self, column: int, thresholds: AnyArray, low: int, high: int) -> int:
        if low == high:
            self.leaves.append((column, low))
            return -len(self.leaves)
        node, middle = len(self.nodes), (low + high) // 2
        self.nodes.append((0, 0.0, 0, 0))
        ways = [self._grown(column, thresholds, *part) for part in ((low, middle), (middle + 1, high))]
        self.nodes[node] = (column, thresholds[middle], ways[0], ways[1])
        return node


def _below(graph: Graph, table: str, thresholds: Sequence[AnyArray]) -> str:
    """How many of the ascending thresholds of each column are below its value: (rows, columns), float64."""
    trees = _Trees()
    for column, some in enumerate(thresholds):
        trees.grow(column, some)
    return trees.sums(graph, table, len(thresholds), np.float64)


def _mixture(graph: Graph, ensemble: Ensemble, inputs: _Inputs) -> str:
    """Probabilities (rows, classes), or standardised numbers (rows, outputs), float64."""
    temperature, offset = ensemble.temperature, np.asarray(ensemble.offset, np.float64)
    found = graph("Div", graph.cast(_networks(graph, ensemble, inputs), np.float64), temperature)
    found = graph("Add", found, (1 - 1 / temperature) * offset)
    if ensemble.loss == "logistic":
        found = graph("Concat", graph("Sigmoid", graph("Neg", found)), graph("Sigmoid", found), axis=1)
    elif ensemble.loss == "cross_entropy":
        found = graph("Softmax", found, axis=1)
    if not ensemble.trees:
        return found
    parts = zip(ensemble.shares_of_kinds, [found, *_predictions_of_trees(graph, ensemble, inputs.raw())], strict=True)
    return graph("Sum", *(graph("Mul", predicted, share) for share, predicted in parts))


def _networks(graph: Graph, ensemble: Ensemble, inputs: _Inputs) -> str:
    """The weighted mean output (rows, outputs), float32; the networks on one encoding are stacked."""
    found = []
    for name in dict.fromkeys(variant.encoding for variant in ensemble.groups):
        fed, networks = graph("Unsqueeze", inputs[name], [0]), []
        for weight, (variant, group) in zip(ensemble.weights, ensemble.groups.items(), strict=True):
            if variant.encoding == name and group.weights is not None:
                gains = relevance_gains(ensemble.shares, variant.gain)[ensemble.columns.sources(name)]
                share = np.float32(weight / len(group.weights))
                networks += [_prepared(group.layout.unpack(flat.copy()), gains, share) for flat in group.weights]
        hidden, biases, output, offset, skip, embedding = (
            [np.stack(arrays) for arrays in zip(*parts, strict=True)] for parts in zip(*networks, strict=True)
        )
        if embedding:
            mix, frequency, phase, bias = (part[:, None] for part in embedding)
            turns = graph("Add", graph("Mul", graph("Unsqueeze", fed, [3]), frequency), phase)
            waves = graph("ReduceSum", graph("Mul", graph("Cos", turns), mix), [3], keepdims=0)
            fed = graph("Concat", graph("Expand", fed, [len(mix), 1, 1]), graph("Add", waves, bias), axis=2)
        below = fed
        for weights, bias in zip(hidden, biases, strict=True):
            below = graph("Relu", graph("Add", graph("MatMul", below, weights), bias[:, None]))
        outputs = [graph("Add", graph("MatMul", below, output[0]), offset[0][:, None])]
        outputs += [graph("MatMul", fed, part) for part in skip]
        found += [graph("ReduceSum", part, [0], keepdims=0) for part in outputs]
    return graph("Sum", *found)


def _prepared(parts: Any, gains: AnyArray, share: np.float32) -> tuple[list[AnyArray], ...]:
    """Parameters of a network by kind, matrices transposed, multiplied by its gains and its share of the outputs."""
    parts.hidden[0][:, : len(gains)] *= gains
    skip, embedding = [], list(parts.embedding)
    if parts.skip is not None:
        parts.skip[:, : len(gains)] *= gains
        skip = [parts.skip.T * share]
    if embedding:
        embedding[1] = embedding[1] * np.float32(2 * np.pi) * gains[:, None]
    matrices = [weights.T for weights in parts.hidden]
    return matrices, parts.biases, [parts.output.T * share], [parts.offset * share], skip, embedding


def _predictions_of_trees(graph: Graph, ensemble: Ensemble, raw: str) -> Iterator[str]:
    """The mean prediction (rows, classes or outputs) of each kind of tree, float64: `TreeGroup.predictions`."""
    groups, merged, end = ensemble.trees, [], 0
    for name, group in groups.items():
        if not all(isinstance(model, TreeModel) for model in group.models):
            raise invalid("export_onnx", "exports trees of LightGBM", name, "fit with trees=False")
        merged.append(MergedBooster([booster for model in group.models for booster in model.boosters]))
    sums = _sums_of_trees(graph, raw, merged)
    for boosters, group in zip(merged, groups.values(), strict=True):
        models, start, end = len(group.models), end, end + len(boosters.rounds)
        outputs = len(boosters.rounds) // models
        values = graph("Reshape", graph("Slice", sums, [start], [end], [1]), [-1, models, outputs])
        if boosters.objective == "binary":
            values = graph("Sigmoid", values)
        elif boosters.objective == "multiclass":
            values = graph("Softmax", values, axis=2)
        baseline = np.array([np.zeros(outputs) + model.baseline for model in group.models])
        values = graph("Add", values, baseline)
        if ensemble.loss == "logistic":
            values = graph("Concat", graph("Sub", 1.0, values), values, axis=2)
        if ensemble.loss != "squared":
            values = graph("Where", graph("Less", values, LEAST_PROBABILITY), 0.0, values)
            values = graph("Where", graph("Greater", graph("ReduceSum", values, [2]), 0.0), values, baseline)
            values = graph("Div", values, graph("ReduceSum", values, [2]))
        yield graph("ReduceMean", values, [1], keepdims=0)


def _sums_of_trees(graph: Graph, raw: str, merged: list[MergedBooster]) -> str:
    """What the trees add up to, or their mean, for every output of the boosters (rows, all outputs), float64."""
    trees, first = _Trees(), 0
    for boosters in merged:
        for number, text in enumerate(tree_texts(boosters.booster)[1]):
            lines, output = dict(line.partition("=")[::2] for line in text.splitlines()), number % len(boosters.rounds)
            tree = {name: np.array(lines.get(name, "").split(), float) for name in FIELDS}
            nodes, leaves = len(trees.nodes), len(trees.leaves)
            values = (tree["leaf_value"] / boosters.rounds[output]).tolist()
            trees.roots.append(nodes)
            if len(values) == 1:
                trees.constant(first + output, values[0])
                continue
            trees.leaves += [(first + output, value) for value in values]
            kind, threshold = tree["decision_type"].astype(int), np.minimum(tree["threshold"], np.finfo(float).max)
            threshold[threshold == -ZERO] = np.nextafter(-ZERO, -np.inf)  # -ZERO itself is 0, and goes right
            # Where bits 2 and 3 are 2, NaN goes to the left if bit 1 is set, else to the right; elsewhere it is 0.
            missing = np.where(kind >> 2 & 3 == 2, np.where(kind & 2, 1, 2), 0)
            ways = [np.where(tree[way] < 0, tree[way] - leaves, tree[way] + nodes) for way in FIELDS[3:5]]
            trees.nodes += np.column_stack([3 * tree["split_feature"] + missing, threshold, *ways]).tolist()
        first += len(boosters.rounds)
    table = np.array(trees.nodes)
    shown, table[:, 0] = np.unique(table[:, 0].astype(int), return_inverse=True)
    thresholds = []
    for index in range(len(shown)):
        chosen = table[:, 0] == index
        edges, table[chosen, 1] = np.unique(table[chosen, 1], return_inverse=True)
        thresholds.append(edges)
    trees.nodes = table
    values = graph("Gather", raw, shown // 3, axis=1)
    values = graph("Where", graph("IsNaN", values), np.array([0.0, -np.inf, np.inf])[shown % 3], values)
    bins = graph.cast(_below(graph, values, thresholds), np.float32)
    return graph.cast(trees.sums(graph, bins, first, np.float32), np.float64)
