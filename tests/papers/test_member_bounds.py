"""A random member measured against the bounds of its class."""

import math
from dataclasses import asdict

import pytest

from fewfire.fourier import spectrum
from fewfire.networks import check_sparsity, construct
from fewfire.papers import sparse_activations as theory
from fewfire.papers.sparse_activations.members import compare_member, scaled_member


def rows_by_statement(rows):
    return {row.statement: row for row in rows}


@pytest.mark.parametrize("kind", ["dense", "junta"])
def test_exact_rows_are_the_spectrum_and_the_theory(kind):
    net = construct.random_member(9, 12, 2, 3, kind)
    (W, B), picture = net.norms(), spectrum(net)
    rows = rows_by_statement(compare_member(net, 2, 0.05, 0.1, rho=0.8))
    assert rows["Definition 1: k"].measured == check_sparsity(net).max_active and rows["Definition 1: k"].bound == 2
    assert rows["Lemma 9"].measured == picture.average_sensitivity()
    assert rows["Lemma 9"].bound == theory.average_sensitivity(9, 12, 2, W, B)
    assert rows["Lemma 10"].measured == picture.noise_sensitivity(0.8)
    assert rows["4k²W²/ε (sharp)"].measured == picture.degree_for(0.05)
    assert rows["4k²W²/ε (sharp)"].bound == theory.degree_sharp(2, W, 0.05)
    assert rows["Theorem 8"].log10_bound > 0 and rows["Theorem 17"].measured is None
    assert all(row.low is None and row.high is None for row in rows.values())
    assert all(row.holds is not False for row in rows.values())
    assert rows["Lemma 9"].holds is True and rows["Theorem 17"].holds is None


def test_sampled_rows_hold_the_exact_values():
    # 22 inputs, of which the network reads 10, so that the exact picture is that of a smaller network.
    small = construct.junta(10, range(4), [1, -1, 1, 1, -1, -1, 1, -1, 1, 1, 1, -1, 1, -1, 1, 1])
    large = construct.junta(22, range(4), small.output)
    picture = spectrum(small)
    rows = rows_by_statement(compare_member(large, 1, 0.1, 0.1, rho=0.9, seed=2))
    average, noise, degree = rows["Lemma 9"], rows["Lemma 10"], rows["4k²W²/ε (sharp)"]
    assert average.low <= picture.average_sensitivity() <= average.high
    assert noise.low <= picture.noise_sensitivity(0.9) <= noise.high
    assert degree.low is None and picture.degree_for(0.1) <= degree.high == degree.measured <= 22
    assert rows["Definition 1: k"].low == 1


def test_rademacher_rows_stand_below_their_bounds():
    net = construct.random_member(6, 4, 1, 0)
    rows = compare_member(net, 1, 0.1, 0.1, samples=30)[-4:]
    assert [row.statement for row in rows] == ["eq. (15)", "eq. (15), every constant", "Conjecture 20", "classical"]
    assert len({row.measured for row in rows}) == 1 and rows[0].measured > 0
    assert rows[1].holds and rows[0].bound == theory.rademacher(6, 4, 1, *net.norms(), 30)


def test_theorem_13_is_shown_for_the_classes_it_speaks_of():
    net = construct.junta(6, range(3), [1, -1] * 4)
    with_time = compare_member(net, 1, 0.1, 0.1, W=2.0, B=3.0)
    assert with_time[-1].statement == "Theorem 13" and with_time[-1].bound == pytest.approx(6**3)
    assert "Theorem 13" not in rows_by_statement(compare_member(net, 1, 0.1, 0.1, W=1.0, B=3.0))


def test_members_are_scaled_into_the_class():
    largest_weight, largest_bias = scaled_member(8, 8, 2, 1).norms()
    weight, _ = scaled_member(8, 8, 2, 1, W=1.0).norms()
    assert weight == pytest.approx(1.0)
    weight, bias = scaled_member(8, 8, 2, 1, W=2 * largest_weight, B=largest_bias / 2).norms()
    assert bias == pytest.approx(largest_bias / 2) and bias <= largest_bias / 2
    assert weight == pytest.approx(largest_weight / 2)
    assert scaled_member(8, 8, 2, 1).equals(construct.random_member(8, 8, 2, 1))
    with pytest.raises(
        ValueError, match=r"B must be positive for this network, which has biases; got 0.0. Remedy: leave B out."
    ):
        scaled_member(8, 8, 2, 1, B=0.0)
    with pytest.raises(ValueError, match=r"W must be a finite number in \(0, inf\); got 0.0."):
        scaled_member(8, 8, 2, 1, W=0.0)


def test_a_row_is_plain_data():
    row = compare_member(construct.random_member(6, 4, 1, 0), 1, 0.1, 0.1)[1]
    table = asdict(row)
    assert table["statement"] == "Lemma 9" and row.holds is True and math.isfinite(table["bound"])
