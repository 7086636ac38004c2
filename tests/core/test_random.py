"""Philox: published vectors, the same words from NumPy and C++, and the laws of the streams."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire import _extension
from fewfire._random import Stream, as_stream, digest64
from fewfire._random._reference import normal_numbers, philox_block, philox_words

# Random123's known-answer vectors for philox4x32 with 10 rounds: counter, key, result.
VECTORS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
SEEDS = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_published_vectors(counter, key, expected):
    assert philox_block(np.array([counter], dtype=np.uint64), key).tolist() == [list(expected)]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_published_vectors_in_cpp(core, counter, key, expected):
    block = counter[0] + (counter[1] << 32)
    for isa in core.available_isas():
        core.set_isa(isa)
        out = np.empty(4, dtype=np.uint32)
        core.philox_words(key[0] + (key[1] << 32), counter[2] + (counter[3] << 32), block, 0, out)
        assert out.tolist() == list(expected)


@given(key=SEEDS, stream=SEEDS, start=st.integers(0, 2**40), count=st.integers(0, 300))
def test_cpp_and_numpy_give_the_same_words(key, stream, start, count):
    core = _extension.load()
    if core is None:
        pytest.skip("the C++ part is not installed")
    expected = philox_words(key, stream, start, count)
    for isa in core.available_isas():
        core.set_isa(isa)
        out = np.empty(count, dtype=np.uint32)
        core.philox_words(key, stream, start // 4, start % 4, out)
        assert np.array_equal(out, expected)


@pytest.mark.parametrize("size", [0, 1, 2, 750, 4095, 4096, 200_000])
@pytest.mark.parametrize("start", [0, 750, 2**40 + 3])
def test_permutations_are_the_stable_order_of_the_words(size, start):
    stream = Stream(5, "batches")
    expected = np.argsort(stream.words(size, start), kind="stable")
    assert np.array_equal(stream.permutation(size, start), expected)
    assert size < 200_000 or len(np.unique(stream.words(size, start))) < size  # of equal words the first comes first


@given(seed=SEEDS, start=st.integers(0, 1000), count=st.integers(0, 200))
def test_a_stream_can_be_entered_anywhere(seed, start, count):
    stream = Stream(seed, "data")
    assert np.array_equal(stream.words(start + count)[start:], stream.words(count, start))


def test_names_and_keys_give_unrelated_streams():
    words = [Stream(key, name).words(4000) for key in (0, 1) for name in ("data", "init", "init/hidden")]
    for i, first in enumerate(words):
        for second in words[:i]:
            # Two independent streams agree in 4000 words about once in a million.
            assert np.count_nonzero(first == second) <= 1


def test_run_hash_keys_the_stream():
    assert Stream.of_run("spec", "data").key == digest64("spec")
    assert digest64("spec") == int.from_bytes(__import__("hashlib").blake2b(b"spec", digest_size=8).digest(), "little")


def test_uniform_is_open_and_flat():
    values = Stream(3, "u").uniform((1000, 100), -2.0, 2.0)
    assert values.shape == (1000, 100)
    assert values.min() > -2 and values.max() < 2
    counts, _ = np.histogram(values, bins=16, range=(-2, 2))
    expected = values.size / 16
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_normal_moments():
    values = Stream(4, "n").normal(400_000)
    error = 5 / np.sqrt(values.size)
    assert abs(values.mean()) < error
    assert abs((values**2).mean() - 1) < error * np.sqrt(2)
    assert abs((values**4).mean() - 3) < error * np.sqrt(96)


def test_normals_are_those_of_box_and_muller():
    """To 1e-15 of the textbook formula, whose angle 2πv is rounded by up to 4.4e-16; radii are below 6.9."""
    words = Stream(9, "n").words(200_000)
    u, v = ((words + 0.5) * 2.0**-32).reshape(-1, 2).T
    expected = np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)
    assert np.abs(normal_numbers(words) - expected).max() < 6.9 * 1e-15
    ends = np.array([0, 0, 2**32 - 1, 2**32 - 1, 0, 2**31, 5, 2**30, 5, 3 * 2**30], dtype=np.uint32)
    assert np.isfinite(normal_numbers(ends)).all()


def test_normals_have_the_same_bits_everywhere(core):
    """NumPy, and C++ on every instruction set; the digest is that of every processor."""
    stream = Stream(7, "n")
    expected = normal_numbers(stream.words(20_002)[2:])
    for isa in core.available_isas():
        core.set_isa(isa)
        assert np.array_equal(stream.normal(10_000, start=1), expected)
    with _extension.without_extension():
        assert np.array_equal(stream.normal((100, 100), start=1).ravel(), expected)
    assert hashlib.sha256(expected.tobytes()).hexdigest()[:16] == "2eb605c700090153"


@given(bound=st.integers(1, 2**32 - 1), seed=SEEDS)
def test_integers_stay_in_range(bound, seed):
    values = Stream(seed, "i").integers(bound, 50)
    assert values.dtype == np.int64
    assert values.min() >= 0 and values.max() < bound


def test_integers_are_flat():
    counts = np.bincount(Stream(1, "i").integers(7, 70_000), minlength=7)
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(10_000)


@given(rows=st.integers(1, 20), columns=st.integers(1, 300), start=st.integers(0, 10**6), seed=SEEDS)
def test_sign_rows_do_not_depend_on_their_company(rows, columns, start, seed):
    stream = Stream(seed, "data")
    table = stream.sign_rows(rows, columns, start)
    assert table.dtype == np.int8 and set(np.unique(table)) <= {-1, 1}
    assert np.array_equal(table[-1], stream.sign_rows(1, columns, start + rows - 1)[0])


def test_signs_are_fair_and_uncorrelated():
    table = Stream(0, "data").sign_rows(40_000, 20).astype(float)
    gram = table.T @ table / len(table)
    assert np.abs(gram - np.eye(20)).max() < 5 / np.sqrt(len(table))
    assert np.abs(table.mean(axis=0)).max() < 5 / np.sqrt(len(table))
    assert abs(Stream(0, "x").signs(100_000).mean()) < 5 / np.sqrt(100_000)


@given(rows=st.integers(1, 30), population=st.integers(1, 40), data=st.data())
def test_subsets_are_distinct_members(rows, population, data):
    size = data.draw(st.integers(0, population))
    subsets = Stream(9, "s").subsets(rows, population, size)
    assert subsets.shape == (rows, size)
    assert all(len(set(row)) == size and set(row) <= set(range(population)) for row in subsets.tolist())


def test_subsets_are_uniform():
    subsets = np.sort(Stream(2, "s").subsets(60_000, 5, 2), axis=1)
    counts = np.unique(subsets[:, 0] * 5 + subsets[:, 1], return_counts=True)[1]
    assert len(counts) == 10
    assert np.abs(counts - 6000).max() < 5 * np.sqrt(6000)


def test_permutation_is_one():
    assert sorted(Stream(0, "p").permutation(100).tolist()) == list(range(100))


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "0"])
def test_bad_seed(seed):
    with pytest.raises(ValueError, match=r"seed must be an integer in \[0, 2\*\*64\); got"):
        as_stream(seed, "data")


def test_bad_sizes():
    with pytest.raises(ValueError, match=r"size must be between 0 and the population 3; got 4"):
        Stream(0, "s").subsets(1, 3, 4)
    with pytest.raises(ValueError, match=r"bound must be in \[1, 2\*\*32\); got 0"):
        Stream(0, "s").integers(0, 1)
