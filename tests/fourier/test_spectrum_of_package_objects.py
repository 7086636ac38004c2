"""Spectra of the package's own networks and problems, which the Fourier code uses only through their interface."""

import numpy as np

from fewfire import fourier, networks, problems
from fewfire._cube import cube


def test_a_parity_problem_has_one_coefficient():
    picture = fourier.spectrum(problems.Parity(8, 3, support=(1, 4, 6)))
    assert picture.largest(1) == [((1, 4, 6), 1.0)]
    assert np.count_nonzero(picture.coefficients) == 1


def test_the_indexing_network_is_half_of_one_plus_the_problem():
    """The network gives 0 or 1, the problem −1 or 1."""
    network = fourier.spectrum(networks.construct.indexing(2))
    problem = fourier.spectrum(problems.Indexing(2))
    expected = problem.coefficients / 2
    expected[0] += 0.5
    assert np.allclose(network.coefficients, expected, rtol=0, atol=1e-6)
    assert np.isclose(network.average_sensitivity(), problem.average_sensitivity() / 4, rtol=1e-6)


def test_sampling_takes_them_too():
    problem = problems.Parity(60, 5, support=(3, 14, 15, 41, 59))
    estimated = fourier.sampled(problem, samples=200)
    assert estimated.coefficient([3, 14, 15, 41, 59]) == (1.0, 1.0, 1.0)
    values = problem.target(cube(60, 0, 4))
    assert values.tolist() == [1, 1, 1, 1]
