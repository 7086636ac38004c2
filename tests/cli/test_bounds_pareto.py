"""`fewfire bounds pareto`: what is short, and what would buy it."""

import re
from math import log

import pytest
import typer
from typer.testing import CliRunner

from fewfire import cli
from fewfire._errors import InvalidArgument
from fewfire.cli.bounds import pareto
from fewfire.networks import init
from fewfire.papers.pareto import (
    Diagnosis,
    Resources,
    frontier,
    good_neuron_probability,
    samples_needed,
    theorem_4,
    theorem_21,
    verdicts,
)
from fewfire.papers.pareto.statements._diagnosis import advice


def ask(*options):
    app = typer.Typer()
    app.command()(pareto)
    result = CliRunner().invoke(app, [str(option) for option in options], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def findings(n, k, width, samples, steps, success=0.99, **more):
    asked = Resources(width, samples, steps, success)
    return {found.statement: found for found in verdicts(n, k, asked, **{"adversarial": True} | more)}


def test_a_run_that_is_known_to_work_is_not_excluded():
    output = ask("--n", 50, "--k", 3, "--width", 1000, "--samples", 1000, "--steps", 20_000, "--adversarial")
    assert "width 1,000 (52,001 parameters)" in output
    assert re.search(r"statistical limit +not excluded +naming the set takes 14\.3 bits", output)
    assert re.search(r"Proposition 3 +not excluded +r·T/\(τ²δ\) = 1\.05e\+12 against ¼·C\(n, k\) = 4\.9e\+03", output)
    assert re.search(r"Theorem 4 +silent +treats even k only", output)
    assert "No lower bound that applies stands in the way." in output
    assert re.search(r"Practical SGD \(SGD on the hinge loss, .*\): (9\d|>99)%", output)
    assert "Nothing is short." in output
    assert "Success is promised by: exhaustive search." in output


def test_proposition_3_is_silent_about_sgd():
    output = ask("--n", 50, "--k", 3, "--width", 1000, "--samples", 1000, "--steps", 20_000)
    assert re.search(r"Proposition 3 +silent +assumes gradients bounded by 1 and adversarial noise", output)


def test_sgd_that_never_succeeds_gets_what_it_lacks():
    output = ask("--n", 30, "--k", 3, "--width", 1000, "--samples", 300, "--steps", 8000)
    assert "Short of data (1,200 examples: >99% (" in output
    assert "Half of the runs of this width need about 3" in output
    assert "90% intervals for the share of 20 runs" in output


def test_intervals_are_for_the_runs_asked_for():
    output = ask("--n", 28, "--k", 3, "--width", 20, "--samples", 4000, "--steps", 1500, "--runs", 60)
    assert "90% intervals for the share of 60 runs" in output


def test_it_is_a_command_of_fewfire():
    result = CliRunner().invoke(
        cli.app, ["bounds", "pareto", "--n", "9", "--k", "2", "--width", "5", "--samples", "3", "--steps", "1"]
    )
    assert result.exit_code == 0
    assert result.output.startswith("Parity of 2 among 9 bits; width 5 (56 parameters), 3 examples, 1 steps")


def test_too_few_examples_are_reported_as_short():
    output = ask("--n", 50, "--k", 4, "--width", 1000, "--samples", 10, "--steps", 20_000)
    assert "statistical limit: short of samples. Lifted by: samples 18." in output
    assert "exhaustive search: short of samples. Bought by: samples 25." in output
    assert "stands in the way" not in output


def test_proposition_3_names_each_resource_and_its_price():
    output = ask("--n", 200, "--k", 12, "--width", 100, "--samples", 1000, "--steps", 1000, "--adversarial")
    assert "Practical SGD: not predicted, beyond the sweeps that this stands on: k = 12 from sparse(2)" in output
    assert "success has at most probability 1.3e-08" in output
    assert "Proposition 3: short of width or steps or samples. Lifted by: width 7.48e+09; or steps" in output


def test_each_price_of_proposition_3_is_enough():
    have = {"width": 100, "samples": 1000, "steps": 1000}
    found = findings(100, 9, **have)["Proposition 3"]
    assert found.verdict == "excluded"
    for way in found.remedies:
        more = {name: int(value * 1.001) + 1 for name, value in way.items()}
        assert findings(100, 9, **{**have, **more})["Proposition 3"].verdict == "not excluded"
        less = {name: int(value * 0.999) for name, value in way.items()}
        assert findings(100, 9, **{**have, **less})["Proposition 3"].verdict == "excluded"


@pytest.mark.parametrize("statement", ["statistical limit", "Theorem 4", "Theorem 5", "exhaustive search"])
@pytest.mark.parametrize(("n", "k", "width", "samples"), [(150, 4, 300, 12), (201, 6, 10**5, 12), (61, 4, 10, 3)])
def test_what_would_buy_success_does(statement, n, k, width, samples):
    have = {"width": width, "samples": samples, "steps": 1}
    found = findings(n, k, **have, error=0.2)[statement]
    assert found.remedies
    for way in found.remedies:
        bought = {name: int(value) + 1 for name, value in way.items() if name != "sparsity"}
        assert findings(n, k, **{**have, **bought}, error=0.2)[statement].verdict in ("not excluded", "met", "promised")


def test_the_numbers_are_those_of_the_statements():
    found = findings(101, 4, 10**5, 10**7, 10**4, error=0.2)
    assert found["statistical limit"].verdict == "not excluded"
    assert f"any method needs {samples_needed(101, 4, success=0.99)} examples" in found["statistical limit"].reason
    supply = frontier(101, 4, 10**5 * 103 + 1, 10**4, 1e7**-0.5).supply
    assert f"{supply:.3g}" in found["Proposition 3"].reason
    assert found["Theorem 5"].verdict == "promised"
    asked = theorem_21(101, 4, 2)
    assert f"sparsity 2 asks for width {asked.width:.3g}, {asked.samples:.3g} examples" in found["Theorem 5"].reason
    asked = theorem_4(101, 4, 25, 0.2)
    assert f"sparsity 25 asks for width {asked.width:.3g}, {asked.samples:.3g}" in found["Theorem 4"].reason


def test_statements_that_do_not_apply_are_silent():
    assert (
        findings(50, 4, 10, 10, 10)["Theorem 4"].reason == "needs a sparsity above max(4k, 1/ε²) = 99 and below n = 50"
    )
    assert findings(4, 4, 10, 10, 10)["Theorem 5"].verdict == "silent"


def test_probabilities_too_small_for_one_minus_them_are_answered():
    """At (500, 10) a start with 8 of the bits has probability 10⁻¹⁷ per bias: 1 − p is 1 in floats."""
    output = ask("--n", 500, "--k", 10, "--width", 1000, "--samples", 10_000, "--steps", 10_000)
    assert re.search(
        r"Theorem 5 +not promised +finds a correlated subnetwork: sparsity 6 asks for width 1\.54e\+13", output
    )
    smallest = theorem_21(501, 10, 8)
    chance = good_neuron_probability(501, 10, 8) / 10
    assert 1 - chance == 1.0 and smallest.width == pytest.approx(2 * log(2000) / chance)


def test_numbers_past_the_floats_are_answered():
    output = ask("--n", 3000, "--k", 1500, "--width", 1000, "--samples", 10_000, "--steps", 10_000)
    assert re.search(r"exhaustive search +promised +10\^901 sets, 10\^903 popcounts", output)
    assert "Theorem 5: short of width and samples. Bought by: nothing that could be counted." in output


@pytest.mark.parametrize(("n", "k", "width", "samples"), [(31, 4, 100, 100), (61, 6, 10**5, 12), (101, 8, 30, 10**6)])
def test_each_remedy_of_theorem_5_names_a_start_that_can_be_drawn(n, k, width, samples):
    ways = findings(n, k, width, samples, 1)["Theorem 5"].remedies
    assert ways
    for way in ways:
        assert init.under_sparse(k, int(way["sparsity"]))(n, 4, 0).width == 4
    assert findings(31, 2, width, samples, 1)["Theorem 5"].reason == "needs an even sparsity above 0 and below k = 2"


def test_noise_raises_the_limits():
    clean, noisy = findings(50, 3, 10, 20, 10), findings(50, 3, 10, 20, 10, noise=0.2)
    assert clean["statistical limit"].verdict == "not excluded"
    assert noisy["statistical limit"].verdict == "excluded"


def test_advice_is_one_line_a_statement():
    lines = advice([Diagnosis("A", "excluded", "", ("width",), ({"width": 2e7},)), Diagnosis("B", "promised", "")])
    assert lines == ["A: short of width. Lifted by: width 2e+07.", "Success is promised by: B."]
    assert advice([]) == ["No lower bound that applies stands in the way."]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((5, 6, Resources(1, 1, 1)), "k must be an integer of at least 1 and at most 5; got 6"),
        ((5, 2, Resources(0, 1, 1)), "width must be an integer of at least 1; got 0"),
        ((5, 2, Resources(1, 0, 1)), "samples must be an integer of at least 1; got 0"),
        ((5, 2, Resources(1, 1, 0)), "steps must be an integer of at least 1; got 0"),
        ((5, 2, Resources(1, 1, 1, 1.5)), r"delta must be a finite number in \(0, 1\]; got 1\.5"),
    ],
)
def test_bad_resources_are_refused(arguments, match):
    with pytest.raises(InvalidArgument, match=match):
        verdicts(*arguments)
