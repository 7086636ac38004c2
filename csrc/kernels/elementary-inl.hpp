// Elementary functions of doubles from additions, multiplications, divisions and square roots alone, in one order: the
// same bits on every processor, which the functions of a C library do not give (glibc's expf has a version with fused
// multiply-adds). Errors stay below three units in the last place. Internal linkage, as all of a kernel file.
//
// src/fewfire/_random/_reference.py has the same series in NumPy: the reference for `log_unit` and `cos_turns`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace fewfire::FEWFIRE_ISA {
namespace {

// Horner's rule: c₀ + x(c₁ + x(c₂ + …)).
template <std::size_t terms>
inline double horner(const double (&coefficients)[terms], double x) {
  double sum = coefficients[terms - 1];
  for (std::size_t i = terms - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

constexpr double ln2_high = 0x1.62e42fefa3800p-1;  // 42 bits: products with exponents are exact
constexpr double ln2_low = 0x1.ef35793c76730p-45;

// 1/(2i + 1): atanh(s)/s in powers of s².
constexpr double odd_reciprocals[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                                      1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31, 1.0 / 33};

// log(1 + e) = 2 atanh(e / (2 + e)) for 0 ≤ e ≤ 1.
inline double log_one_plus(double e) {
  const double s = e / (2.0 + e);
  return 2.0 * s * horner(odd_reciprocals, s * s);
}

// exp(x) = 2^k exp(r), |r| ≤ log(2)/2. Below −708 it is 0 and above 708 as large as there, beyond any float.
inline double exponential(double x) {
  constexpr double factorials[] = {1.0,           1.0,            1.0 / 2,         1.0 / 6,         1.0 / 24,
                                   1.0 / 120,     1.0 / 720,      1.0 / 5040,      1.0 / 40320,     1.0 / 362880,
                                   1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  if (!(x > -708.0)) return 0.0;
  if (x > 708.0) x = 708.0;
  constexpr double shift = 0x1.8p52;  // adding it rounds to a whole number
  const double k = (x * 0x1.71547652b82fep+0 + shift) - shift;
  const double r = (x - k * ln2_high) - k * ln2_low;
  const auto power = static_cast<std::uint64_t>(static_cast<std::int64_t>(k) + 1023) << 52;
  return horner(factorials, r) * std::bit_cast<double>(power);
}

// log(u) for normal u > 0: u = 2^e m with m in [√½, √2).
inline double log_unit(double u) {
  constexpr double terms[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                              1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(u);
  // The exponent of u·√2 is the e that leaves m in the interval.
  const std::uint64_t shifted = bits + (0x3ff0000000000000u - std::bit_cast<std::uint64_t>(0x1.6a09e667f3bcdp-1));
  const std::uint64_t exponent = (shifted >> 52) - 1023;  // modulo 2^64
  const double m = std::bit_cast<double>(bits - (exponent << 52));
  const double e = static_cast<double>(static_cast<std::int32_t>(exponent));
  const double s = (m - 1.0) / (m + 1.0);
  return e * ln2_high + (2.0 * s * horner(terms, s * s) + e * ln2_low);
}

// cos(2π turns) for 0 ≤ turns < 2^20: a quarter turn is left out exactly, and the rest lies within an eighth.
inline double cos_turns(double turns) {
  constexpr double cosine[] = {1.0,
                               -1.0 / 2,
                               1.0 / 24,
                               -1.0 / 720,
                               1.0 / 40320,
                               -1.0 / 3628800,
                               1.0 / 479001600,
                               -1.0 / 87178291200,
                               1.0 / 20922789888000};
  constexpr double sine[] = {1.0,
                             -1.0 / 6,
                             1.0 / 120,
                             -1.0 / 5040,
                             1.0 / 362880,
                             -1.0 / 39916800,
                             1.0 / 6227020800,
                             -1.0 / 1307674368000,
                             1.0 / 355687428096000};
  constexpr double shift = 0x1.8p52;
  const double quarters = 4.0 * turns, nearest = (quarters + shift) - shift;
  const double angle = (quarters - nearest) * 0x1.921fb54442d18p+0;
  const double square = angle * angle;
  const auto quadrant = static_cast<std::int32_t>(nearest);
  const double value = quadrant & 1 ? -(angle * horner(sine, square)) : horner(cosine, square);
  return quadrant & 2 ? -value : value;
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
