"""`fewfire bounds` as a user sees it."""

import re

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.fourier import spectrum
from fewfire.networks import construct
from fewfire.papers import sparse_activations as theory

runner = CliRunner()


def bounds(*arguments):
    result = runner.invoke(cli.app, ["bounds", "sparse-activations", *arguments])
    return result, re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_help_names_the_papers_and_the_options():
    output = runner.invoke(cli.app, ["bounds", "--help"]).output
    assert "sparse-activations" in output
    result, output = bounds("--help")
    assert result.exit_code == 0
    for option in ("--n", "--s", "--k", "--W", "--B", "--epsilon", "--delta", "--samples"):
        assert option in output


def test_exact_table():
    result, output = bounds("--n", "10", "--s", "8", "--k", "2", "--epsilon", "0.2")
    assert result.exit_code == 0, result.output
    net = construct.random_member(10, 8, 2, 0)
    W, B = net.norms()
    assert f"Class: n = 10, s = 8, k = 2, W = {W:.4g}, B = {B:.4g}; ε = 0.2, δ = 0.05." in output
    picture = spectrum(net)
    line = next(line for line in output.splitlines() if "Lemma 9" in line)
    assert (
        f"{picture.average_sensitivity():.4g}" in line and f"{theory.average_sensitivity(10, 8, 2, W, B):.4g}" in line
    )
    degree = next(line for line in output.splitlines() if line.startswith("degree for a tail ≤ 0.2"))
    assert degree.split("0.2", 1)[1].split()[0] == str(picture.degree_for(0.2))
    for statement in ("Definition 1: k", "4k²W² (sharp)", "Lemma 10", "Theorem 8", "Theorem 17", "Lemma 18"):
        assert statement in output
    assert "Exceeded" not in output and "Rademacher" not in output


def test_rademacher_rows_and_given_scales():
    result, output = bounds("--n", "6", "--s", "4", "--W", "1", "--B", "2", "--samples", "20", "--kind", "junta")
    assert result.exit_code == 0, result.output
    assert "W = 1, B = 2;" in output
    assert re.search(r"Rademacher complexity, m = 20 +≥ [\d.]+ +[\d.]+ +eq\. \(15\)", output)
    assert "Conjecture 20" in output and "classical" in output


def test_large_inputs_are_sampled_with_intervals():
    result, output = bounds("--n", "24", "--s", "16")
    assert result.exit_code == 0, result.output
    assert re.search(r"average sensitivity +[\d.]+ \[[\d.]+, [\d.]+\]", output)
    assert re.search(r"degree for a tail ≤ 0\.1 +≤ \d+", output)
    assert re.search(r"active neurons, most +≥ 1 ", output)
    assert re.search(r"10\^[\d.e+]+ +Theorem 8\b", output)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--k", "40"), "k must be an integer of at least 1 and at most 16; got 40."),
        (("--epsilon", "0"), "epsilon must be a finite number in (0, inf); got 0.0."),
        (("--rho", "1"), "rho must be a finite number in [0, 1); got 1.0."),
        (("--kind", "sparse"), "kind must be one of 'dense', 'junta'; got 'sparse'."),
        (("--n", "3", "--s", "64"), "s must be at most k·2**2 = 4 for 3 inputs"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    result, _ = bounds(*arguments)
    assert result.exit_code != 0
    assert str(result.exception).startswith(message)
