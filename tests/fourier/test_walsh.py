"""The transform: its laws, every variant against the reference implementation bit for bit, types, alignment, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire import _extension, fourier
from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.fourier import _walsh
from fewfire.fourier._walsh import walsh_reference

core = _extension.load()
DTYPES = [np.float64, np.float32, np.int32]
needs_core = pytest.mark.skipif(core is None, reason="needs the C++ part")


def table(n, dtype=np.float64, seed=0):
    stream = Stream(seed, "values")
    return stream.integers(19, 2**n).astype(dtype) - 9 if dtype == np.int32 else stream.normal(2**n).astype(dtype)


def characters(n):
    """χ_S(x) at row S, column x, from the definition."""
    points = cube(n)
    rows = [points[:, [j for j in range(n) if S >> j & 1]].prod(axis=1) for S in range(2**n)]
    return np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", range(9))
def test_equals_the_definition(n, dtype):
    values = table(n, dtype)
    expected = characters(n) @ values.astype(np.float64)
    tolerance = {np.float64: 1e-12, np.float32: 1e-4, np.int32: 0}[dtype]
    result = fourier.transform(values, normalise=False)
    assert result.dtype == dtype
    assert np.allclose(result, expected, rtol=0, atol=tolerance * 2**n)
    if dtype != np.int32:
        assert np.array_equal(fourier.transform(values), result / dtype(2**n))


@settings(max_examples=40)
@given(n=st.integers(0, 17), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 2**32))
def test_twice_is_the_identity_times_two_to_the_n(n, dtype, seed):
    # Of a table of signs Σ|coefficients| ≤ 2^(3n/2), so even the second transform fits into int32.
    values = Stream(seed, "values").signs(2**n).astype(dtype) if dtype == np.int32 else table(n, dtype, seed)
    twice = fourier.transform(fourier.transform(values, normalise=False), normalise=False)
    rounding = 0.0 if dtype == np.int32 else 8 * n * np.finfo(dtype).eps * np.abs(values).max()
    assert np.allclose(twice, values * dtype(2**n), rtol=0, atol=2**n * rounding)


@settings(max_examples=30)
@given(n=st.integers(0, 16), seed=st.integers(0, 2**32))
def test_parseval(n, seed):
    values = table(n, seed=seed)
    coefficients = fourier.transform(values)
    assert np.isclose((coefficients**2).sum(), (values**2).mean(), rtol=1e-12)


@settings(max_examples=20)
@given(n=st.integers(0, 14), dtype=st.sampled_from([np.float64, np.float32]), seed=st.integers(0, 2**32))
def test_inverse_undoes_the_transform(n, dtype, seed):
    values = table(n, dtype, seed)
    tolerance = 16 * (n + 1) * np.finfo(dtype).eps * np.abs(values).max()
    sums = fourier.transform(values, normalise=False)
    for back in (fourier.inverse(fourier.transform(values)), fourier.transform(sums)):
        assert back.dtype == dtype
        assert np.allclose(back, values, rtol=0, atol=tolerance)


@needs_core
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [*range(13), 15, 17, 18, 19])
def test_every_variant_thread_count_and_alignment_gives_the_bits_of_the_reference(n, dtype):
    values = table(n, dtype)
    scale = 1 if dtype == np.int32 else dtype(2.0**-n)
    expected = np.empty_like(values)
    walsh_reference(values, expected, scale)
    best = core.isa()
    try:
        for isa in core.available_isas():
            core.set_isa(isa)
            for threads in (1, 2, 3) if n > 15 else (1,):
                for shift in (0, 1, 16 // values.itemsize):
                    raw = _walsh.aligned_empty(2**n + shift, values.dtype)
                    out = raw[shift:]
                    core.walsh(values, out, scale, threads)
                    assert np.array_equal(out, expected), (isa, threads, shift, "out of place")
                    out[:] = values
                    core.walsh(out, out, scale, threads)
                    assert np.array_equal(out, expected), (isa, threads, shift, "in place")
    finally:
        core.set_isa(best)


def test_without_the_extension_the_reference_gives_the_same():
    values, whole = table(10), table(10, np.int32)
    fast = fourier.transform(values), fourier.transform(whole, normalise=False)
    with _extension.without_extension():
        assert np.array_equal(fourier.transform(values), fast[0])
        assert np.array_equal(fourier.transform(whole, normalise=False), fast[1])


def test_a_parity_has_one_coefficient():
    points = cube(6)
    result = fourier.transform(points[:, 1] * points[:, 4] * points[:, 5])
    assert result[0b110010] == 1.0
    assert np.count_nonzero(result) == 1


def test_in_place_overwrites_and_returns_the_array():
    values = table(8)
    expected = fourier.transform(values)
    assert fourier.transform(values, inplace=True) is values
    assert np.array_equal(values, expected)
    fourier.transform(values, inplace=True, normalise=False)
    assert np.allclose(values, table(8), atol=1e-14)


def test_out_of_place_leaves_the_values_and_begins_at_a_cache_line():
    values = table(8)
    result = fourier.transform(values)
    assert np.array_equal(values, table(8))
    assert result.ctypes.data % 64 == 0


def test_other_numbers_and_layouts_are_converted():
    expected = fourier.transform([1.0, 2.0, 3.0, 5.0])
    assert np.array_equal(expected, [2.75, -0.75, -1.25, 0.25])
    for values in ([1, 2, 3, 5], np.array([1, 2, 3, 5], np.int8), np.array([1, 0, 2, 0, 3, 0, 5, 0.0])[::2]):
        assert np.array_equal(fourier.transform(values), expected)
    swapped = np.array([1, 2, 3, 5], dtype=">f4")
    assert fourier.transform(swapped).dtype == np.float32
    assert np.array_equal(fourier.transform(swapped), expected)


@pytest.mark.parametrize("last", [0, 1])
def test_int32_is_refused_from_the_first_sum_that_overflows(last):
    values = np.zeros(4, dtype=np.int32)
    values[:] = [2**30, -(2**30) + 1, 0, last]
    if last == 0:
        assert np.array_equal(fourier.transform(values, normalise=False), [1, 2**31 - 1, 1, 2**31 - 1])
    else:
        with pytest.raises(ValueError, match=r"at most 2147483647, or int32 coefficients overflow; got 2147483648\. "
                           r"Remedy: pass float64, exact up to 2\*\*53"):  # fmt: skip
            fourier.transform(values, normalise=False, inplace=True)
        assert values[0] == 2**30


def test_the_magnitude_of_the_least_int32_is_counted_right():
    with pytest.raises(ValueError, match="got 2147483648"):
        fourier.transform(np.array([-(2**31), 0], dtype=np.int32), normalise=False)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1.0, 2.0, 3.0], {}, r"values must be a vector of 2ⁿ numbers, one per point of the cube; got shape \(3,\)"),
        ([[1.0, 2.0]], {}, r"got shape \(1, 2\)"),
        ([], {}, r"got shape \(0,\)"),
        ([1j, 0], {}, "values must hold real numbers; got dtype complex128"),
        (np.ones(2, np.int32), {}, "values cannot be divided by 2ⁿ in integers; got dtype int32. Remedy: leave them"),
        ([1.0, 2.0], {"inplace": True}, "to be overwritten; got a list"),
        (np.ones(2, np.float16), {"inplace": True}, "to be overwritten; got dtype float16"),
        (np.ones(4)[::2], {"inplace": True}, "got an array that is strided, misaligned or read-only"),
        ([1.0, 2.0], {"threads": 0}, "threads must be an integer of at least 1"),
    ],
)
def test_bad_input_is_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        fourier.transform(values, **options)


@needs_core
def test_the_kernel_checks_its_arrays():
    with pytest.raises(ValueError, match=r"values and out must hold 2\*\*n values each"):
        core.walsh(np.zeros(4), np.zeros(8), 1.0, 1)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        core.walsh(np.zeros(4), np.zeros(4), 1.0, 0)
