"""Stored verdicts are those that the recipes make of the stored measurements: judging takes nothing else."""

import json
from pathlib import Path

import numpy as np
import pytest

from fewfire.papers._claims import grouped
from fewfire.papers.parities.recipes import digits, error_terms, separation, theorem_2
from fewfire.papers.sparse_activations.recipes import (
    bounds,
    inducing,
    inside_the_class,
    lazy_neurons,
    learn_back,
    learning_curves,
    learning_scaling,
    mostly_sparse,
    rademacher,
    statistical_queries,
)

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def of_digits(info):
    rows = info["rows"]
    table = {row["digits"]: {} for row in rows}
    for row in rows:
        table[row["digits"]][row["method"]] = row["accuracies"]
    return digits.judge(table)


def of_error_terms(info):
    cells = {key: [row["errors"] for row in info["rows"] if row["resource"] == key] for key in error_terms.CLAIMS}
    return error_terms.judge({key: np.array(rows).T for key, rows in cells.items()})


def of_separation(info):
    dimensions = info["dimensions"]
    families = dict.fromkeys(row["family"] for row in dimensions)
    powers = {name: separation._growth([row for row in dimensions if row["family"] == name]) for name in families}
    leads = [separation._lead(rows) for rows in grouped(info["rows"], "n", "k", "width", "samples").values()]
    return separation.judge(dimensions, powers, info["neurons"], leads)


JUDGED = {
    "parities-digits": of_digits,
    "parities-error-terms": of_error_terms,
    "parities-separation": of_separation,
    "parities-theorem-2": lambda info: theorem_2.judge(theorem_2.RECIPE.scales["quick"], info["rows"]),
    "sparse-activations-bounds": lambda info: bounds.judge(info["rows"]),
    "sparse-activations-inducing": lambda info: inducing.judge(info["rows"]),
    "sparse-activations-inside-the-class": lambda info: inside_the_class.judge(
        inside_the_class.RECIPE.scales["quick"], inside_the_class.per_target(info["rows"])
    ),
    "sparse-activations-lazy-neurons": lambda info: lazy_neurons.judge(info["perceptrons"], info["transformers"]),
    "sparse-activations-learn-back": lambda info: learn_back.judge(info["rows"], learn_back.attained(16)),
    "sparse-activations-learning-curves": lambda info: learning_curves.judge(info["rows"]),
    "sparse-activations-learning-scaling": lambda info: learning_scaling.judge(
        info["samples"], info["slopes"], info["over_k"]
    ),
    "sparse-activations-mostly-sparse": lambda info: mostly_sparse.judge(info["over_k"], info["cube"]),
    "sparse-activations-rademacher": lambda info: rademacher.judge(
        [*info["over_s"], *info["over_k"], *info["over_n"]], info["on_sample"]
    ),
    "sparse-activations-statistical-queries": lambda info: statistical_queries.judge(
        info["parameters"]["targets"], info["rows"], info["families"], info["elimination"]
    ),
}


@pytest.mark.parametrize("name", JUDGED)
def test_verdicts_follow_from_the_measurements(name):
    info = json.loads((RESULTS / f"{name}.json").read_text())
    again = [entry.to_dict() for entry in JUDGED[name](info)]
    assert len(again) == len(info["judgement"])
    for found, stored in zip(again, info["judgement"], strict=True):
        for key in ("claim", "statistic", "rule", "threshold", "refuted_by", "passed"):
            assert found[key] == stored[key]
        assert found["value"] == pytest.approx(stored["value"], rel=1e-6, abs=1e-12)
        assert found["power"]["effect"] == stored["power"]["effect"]
        assert found["power"]["probability"] == pytest.approx(stored["power"]["probability"], abs=0.02)
        for key in ("value", "low", "high"):
            assert found["effect"][key] == pytest.approx(stored["effect"][key], rel=1e-6, abs=1e-12)
