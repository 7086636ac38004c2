"""`fewfire bounds parities`: every lemma next to a network that was trained, and what is exceeded marked so."""

import re

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.papers import parities
from fewfire.papers.parities.proof import ProofRow, compare_proof

OPTIONS = ["--n", "51", "--k", "3", "--width", "400", "--steps", "300", "--examples", "2000"]


def test_the_table_names_every_lemma():
    result = CliRunner().invoke(cli.app, ["bounds", "parities", *OPTIONS], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    output = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    rate = parities.learning_rates(51, 3, 200, 300).later
    assert output.startswith("Parity of 3 among 51 inputs on D_A; 400 neurons, 300 steps at rates from 0.5 to 0")
    assert f"(the theorem's: {rate:.3g})" in output
    for number in (3, 4, 5, 6, 7, 9, 10, 12, 13, 14):
        assert f"Lemma {number}" in output
    assert re.search(r"share of good neurons +0\.2\d+ +≥ 0\.0412 +Lemma 7", output)
    assert "Theorem 2 asks for k ≥ 7; k is 3." in output
    # 2000 examples are far too few for biases of 1/24.
    assert "Exceeded: biases move, 2,000 examples, Lemma 7 with a sample: b." in output


def test_rows_keep_to_the_bounds_and_can_fail_to():
    rows = compare_proof(51, 3, 400, 300, examples=2000)
    exceeded = {row.quantity for row in rows if row.holds is False}
    assert exceeded <= {"biases move, 2,000 examples", "farthest feature of u*"}
    error = next(row for row in rows if row.quantity == "error of the best iterate")
    assert error.measured <= 0.01
    terms = [row.bound for row in rows if row.statement.startswith("  ")]
    assert sum(terms) == pytest.approx(error.bound) == pytest.approx(parities.theorem_2(51, 3, 200, 300).error)
    assert ProofRow("a", 2.0, 1.0, "s").holds is False and ProofRow("a", 2.0, 1.0, "s", "at least").holds
    assert ProofRow("a", 2.0, 1.0, "s", None).holds is None


def test_bad_sizes_are_refused():
    result = CliRunner().invoke(cli.app, ["bounds", "parities", "--k", "4"])
    assert result.exit_code != 0
    assert "k must be odd" in result.output + str(result.exception)
