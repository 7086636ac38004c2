"""Remark 11 on whole cubes: networks that are k-sparse on most inputs, and one that refutes the bound without p."""

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire.fourier import spectrum
from fewfire.networks import TwoLayer, check_sparsity, construct
from fewfire.papers import sparse_activations as theory


def random_network(seed, n=9, s=12):
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=(s, n))
    return TwoLayer(hidden, -draw.uniform(0, 2, s) * np.sqrt(n), draw.choice([-1.0, 1.0], s))


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_holds_for_every_k_with_the_share_measured(seed):
    net = random_network(seed)
    report, sensitivity, W = check_sparsity(net), spectrum(net).average_sensitivity(), net.norms().W
    for k in range(1, net.width + 1):
        p = report.exceeds(k).value
        assert sensitivity <= theory.average_sensitivity_mostly_sparse(net.width, k, W, p) * (1 + 1e-9)


def test_without_the_third_term_the_bound_is_refuted():
    """s copies of one neuron that fires on an eighth of the cube: k = 1 but for p = 1/8, and AS above 4k²W²."""
    s = 16
    net = TwoLayer(np.tile([[1.0, 1.0, 1.0, 0.0]], (s, 1)), np.full(s, -2.0), np.ones(s))
    sensitivity, W, p = spectrum(net).average_sensitivity(), net.norms().W, check_sparsity(net, 1).exceeds().value
    assert p == 1 / 8
    assert theory.average_sensitivity_sharp(1, W) < sensitivity
    assert sensitivity <= theory.average_sensitivity_mostly_sparse(s, 1, W, p)


def test_appendix_a_with_a_small_gamma_is_sparse_on_most_inputs():
    """Γ below √q lets a second neuron fire on a few inputs: Definition 1 fails, Remark 11 holds."""
    net = construct.dense_weights(3, 9, seed=0, gamma=1.1)
    report = check_sparsity(net, 1)
    p = report.exceeds().value
    assert not report.holds() and 0 < p < theory.exceedance_allowed(8, 1)
    tail = spectrum(net).tail(3)
    assert 4 <= theory.degree_mostly_sparse(8, 1, net.norms().W, p, tail) < np.inf
    assert spectrum(net).average_sensitivity() <= theory.average_sensitivity_mostly_sparse(8, 1, net.norms().W, p)


def test_values():
    assert theory.average_sensitivity_mostly_sparse(10, 2, 3.0, 0.0) == theory.average_sensitivity_sharp(2, 3.0) == 144
    assert theory.average_sensitivity_mostly_sparse(10, 2, 3.0, 0.5) == 144 + 900
    allowed = theory.exceedance_allowed(10, 2)
    assert allowed == pytest.approx(0.04)
    assert theory.average_sensitivity_mostly_sparse(10, 2, 3.0, allowed) == pytest.approx(1.5 * 144)
    assert theory.degree_mostly_sparse(10, 2, 3.0, 0.0, 0.1) == theory.degree_sharp(2, 3.0, 0.1)
    with pytest.raises(InvalidArgument, match="k must be .* at most 3; got 4. Remedy: no more neurons can fire"):
        theory.exceedance_allowed(3, 4)
    with pytest.raises(InvalidArgument, match="p must be a finite number"):
        theory.average_sensitivity_mostly_sparse(3, 1, 1.0, 1.5)
