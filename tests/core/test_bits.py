"""Packing: C++ on every instruction set, the reference implementation and the definition agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire import _bits, _extension
from fewfire._cube import cube, cube_blocks, cube_index
from fewfire._random import Stream


def by_definition(signs):
    words = [[0] * _bits.words_for(signs.shape[1]) for _ in signs]
    for i, row in enumerate(signs):
        for j, sign in enumerate(row):
            if sign < 0:
                words[i][j // 64] |= 1 << (j % 64)
    return np.array(words, dtype=np.uint64).reshape(len(signs), -1)


@given(rows=st.integers(1, 140), columns=st.integers(1, 140), seed=st.integers(0, 100))
def test_pack_and_unpack(rows, columns, seed):
    signs = Stream(seed, "bits").sign_rows(rows, columns)
    expected = by_definition(signs)
    core = _extension.load()
    for isa in core.available_isas() if core else []:
        core.set_isa(isa)
        assert np.array_equal(_bits.pack(signs), expected)
        assert np.array_equal(_bits.pack_columns(signs), by_definition(signs.T))
        assert np.array_equal(_bits.unpack(expected, columns), signs)
    assert np.array_equal(_bits._pack_reference(signs), expected)
    assert np.array_equal(_bits._unpack_reference(expected, columns), signs)


def test_without_the_extension(without_core):
    signs = Stream(0, "bits").sign_rows(70, 67)
    assert np.array_equal(_bits.pack(signs), by_definition(signs))
    assert np.array_equal(_bits.pack_columns(signs), by_definition(signs.T))
    assert np.array_equal(_bits.unpack(_bits.pack(signs), 67), signs)


def test_product_of_signs_is_xor_of_bits():
    signs = Stream(1, "bits").sign_rows(500, 2)
    words = _bits.pack_columns(signs)
    product = (signs[:, 0] * signs[:, 1])[:, None]
    assert np.array_equal(words[0] ^ words[1], _bits.pack_columns(product)[0])


@pytest.mark.parametrize("where", [(0, 0), (63, 64), (69, 66)])
@pytest.mark.parametrize("pack", [_bits.pack, _bits.pack_columns, _bits._pack_reference])
def test_other_values_are_refused(pack, where, core):
    for isa in core.available_isas():
        core.set_isa(isa)
        signs = np.ones((70, 67), dtype=np.int8)
        signs[where] = 0
        with pytest.raises(ValueError, match=r"signs may hold only \+1 and −1; got 0\. Remedy: map 0 to \+1"):
            pack(signs)


def test_wrong_arrays_are_refused():
    with pytest.raises(ValueError, match=r"signs must be a two-dimensional int8 array of ±1; got dtype float64"):
        _bits.pack(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"got a list"):
        _bits.pack([[1]])
    with pytest.raises(
        ValueError, match=r"words must be uint64 of shape \(rows, 2\) for 65 columns; got .*shape \(1, 1\)"
    ):
        _bits.unpack(np.zeros((1, 1), dtype=np.uint64), 65)


def test_cube_order():
    table = cube(3)
    assert table.shape == (8, 3) and table.dtype == np.int8
    assert table[0].tolist() == [1, 1, 1]
    assert table[6].tolist() == [1, -1, -1]
    assert np.array_equal(cube_index(table), np.arange(8))
    assert np.array_equal(np.concatenate(list(cube_blocks(5, rows=6))), cube(5))
