"""The order of monomials and its two maps."""

from itertools import combinations

import pytest

from fewfire import fourier


@pytest.mark.parametrize(("n", "degree"), [(1, 0), (1, 1), (5, 3), (7, 7), (12, 2)])
def test_order_is_by_size_then_lexicographic(n, degree):
    expected = [members for size in range(degree + 1) for members in combinations(range(n), size)]
    table = fourier.monomials(n, degree)
    assert [tuple(int(j) for j in row if j >= 0) for row in table] == expected
    assert fourier.monomial_count(n, degree) == len(expected)
    for index, members in enumerate(expected):
        assert fourier.monomial_index(n, members) == index
        assert fourier.monomial_members(n, index) == members


def test_a_degree_above_n_is_refused():
    with pytest.raises(ValueError, match="degree must be an integer of at least 0 and at most 3; got 4"):
        fourier.monomials(3, 4)
