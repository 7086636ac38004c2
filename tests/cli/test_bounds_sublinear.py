"""`fewfire bounds sublinear`: exact values next to the bounds of the paper."""

import re

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire._errors import InvalidArgument
from fewfire.networks.init import activity_threshold
from fewfire.papers import sublinear as theory
from fewfire.papers.sublinear.statements._table import (
    activity_rows,
    cost_rows,
    fit_rows,
    number,
    power_of_ten,
    theorem_rows,
)


def ask(*options):
    arguments = ["bounds", "sublinear", *map(str, options)]
    return CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "140"})


def test_the_table_of_a_usual_network():
    result = ask()
    assert result.exit_code == 0, result.output
    output = result.output
    assert output.startswith("Network: 100,000 neurons, 50 inputs of norm 1, threshold τ = 0.008411; 100 examples")
    assert re.search(r"active on an input at the start +3000 \[2895, 3106\] +34,111 +Lemma 5\.15, K = 8\.41", output)
    assert re.search(r"can change, ‖Δw‖ ≤ m\^\(−15/24\) +2,309 +13,379 +Claim 3\.18", output)
    assert re.search(r"degree of the robust fit +573 +862 +Lemma 4\.2", output)
    assert re.search(r"width asked, the proof's K +10\^29,297 +Theorems 4\.8, 5\.12", output)
    assert "constants the paper leaves open are 1." in output
    assert output.rstrip().endswith("which leaves half of the neurons active; here τ·m = 841.")


def test_every_option_reaches_the_table():
    usual = ask("--width", 5000).output
    for option, value in (
        ("--n", 7),
        ("--d", 9),
        ("--activity", 0.1),
        ("--K", 2),
        ("--gamma", 0.5),
        ("--rho", 0.4),
        ("--epsilon", 0.3),
        ("--attack-steps", 5),
    ):
        changed = ask("--width", 5000, option, value)
        assert changed.exit_code == 0, changed.output
        body = [
            output.split("\n", 1)[1] for output in (usual, changed.output)
        ]  # below the line that repeats the options
        assert body[0] != body[1], option


def test_numbers_are_those_of_the_theory():
    m, tau = 20_000, activity_threshold(20_000, 500)
    rows = {row.quantity: row for row in activity_rows(m, tau, 3, 1.5)}
    start = rows["active on an input at the start"]
    low, high = theory.active_interval(m, tau)
    assert start.value == f"500 [{low}, {high}]"
    assert start.bound == number(theory.activity_bound(m, tau * m**0.6))
    radius = 1.5 * m**-0.8
    assert rows["can change, ‖Δw‖ ≤ K/m^(4/5)"].value == number(m * theory.flip_probability(m, radius, tau))
    assert rows["can be active then"].value == number(theory.reachable_active(m, radius, tau))
    assert rows["|f − g| at an input, 99%"].bound == number(theory.distance_bound(m, radius, tau).total)
    cost = theory.iteration_cost(m, 3, 6, 500, 2)
    assert [row.value for row in cost_rows(m, 3, 6, 500, 2)] == [
        number(value) for value in (cost.query, cost.forward, cost.backward, cost.update, cost.attack, cost.total)
    ]
    assert cost_rows(m, 3, 6, 500, 2)[-1].statement == f"dense: {number(cost.dense)}, {cost.speedup:.3g} times"
    own, given = theorem_rows(3, 6, 0.5, 0.1, 4.0)[::3]
    assert own.bound == power_of_ten(theory.theorem_parameters(3, 6, 0.5, 0.1).log10_width)
    assert (given.quantity, given.bound) == (
        "width asked, K = 4",
        power_of_ten(theory.theorem_parameters(3, 6, 0.5, 0.1, 4.0).log10_width),
    )


def test_polynomials_past_the_limit_are_not_built():
    degree, size = fit_rows(10, 1e-4, 0.1, 0.1)
    assert degree.value == size.value == "not built"
    assert degree.bound == number(theory.robust_degree(10, 1e-4, 0.1))
    degree, size = fit_rows(2, 1.0, 0.1, 0.1)
    step = theory.step_polynomial(1.0, 0.1 / 6, 0.1)
    assert (degree.value, size.value) == (str(step.degree), f"2^{step.log2_coefficients():.0f}")


def test_numbers_can_be_read():
    assert [number(value) for value in (0.1234, 99.96, 1234.5, 9_999_999, 3e8)] == [
        "0.123",
        "100",
        "1,234",
        "9,999,999",
        "3e+08",
    ]
    assert [power_of_ten(value) for value in (29296.9, -21.64, 2.0)] == ["10^29,297", "10^-21.6", "10^2"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--activity", 0.7), r"activity must be a finite number in \(0, 0\.5\]; got 0\.7\. Remedy: a threshold of 0"),
        (("--d", 1), "d must be an integer of at least 2; got 1"),
        (("--gamma", 5), r"gamma must be a finite number in \(0, 4\); got 5"),
        (("--epsilon", 1), r"epsilon must be a finite number in \(0, 1\); got 1"),
        (("--K", 0), r"K must be a finite number in \(0, inf\); got 0"),
    ],
)
def test_bad_options_are_named(options, match):
    result = ask(*options)
    assert isinstance(result.exception, InvalidArgument)
    assert re.search(match, str(result.exception))
