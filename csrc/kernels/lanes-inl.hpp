// Sixteen floats with a fused multiply-add that rounds once and a sum with one order on every instruction set, so that
// results have the same bits everywhere. Internal linkage, as all of a kernel file.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr std::size_t lane_count = 16;

#if defined(__AVX512F__)
struct Lanes {
  __m512 v;
};
inline Lanes load(const float* at) { return {_mm512_loadu_ps(at)}; }
// The first `count` < 16 numbers, the rest 0.
inline Lanes load_part(const float* at, std::size_t count) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), at)};
}
inline void store(float* at, Lanes a) { _mm512_storeu_ps(at, a.v); }
inline Lanes fill(float value) { return {_mm512_set1_ps(value)}; }
inline Lanes fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Lanes maximum(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Lanes square_root(Lanes a) { return {_mm512_sqrt_ps(a.v)}; }
// One bit per lane: false where either side is no number.
inline std::uint32_t greater(Lanes a, Lanes b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ); }
// One bit per lane: set unless a ≤ b, so also where either is no number.
inline std::uint32_t not_at_most(Lanes a, Lanes b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_NLE_UQ); }
inline __m256 folded(Lanes a) { return _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1)); }
#elif defined(__AVX2__)
struct Lanes {
  __m256 low, high;
};
inline Lanes load(const float* at) { return {_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)}; }
inline void store(float* at, Lanes a) { _mm256_storeu_ps(at, a.low), _mm256_storeu_ps(at + 8, a.high); }
inline Lanes fill(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Lanes operator+(Lanes a, Lanes b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
inline Lanes maximum(Lanes a, Lanes b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
inline Lanes square_root(Lanes a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
template <int Predicate>
inline std::uint32_t compare(Lanes a, Lanes b) {
  const int low = _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, Predicate));
  const int high = _mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, Predicate));
  return static_cast<std::uint32_t>(low | high << 8);
}
inline std::uint32_t greater(Lanes a, Lanes b) { return compare<_CMP_GT_OQ>(a, b); }
inline std::uint32_t not_at_most(Lanes a, Lanes b) { return compare<_CMP_NLE_UQ>(a, b); }
inline __m256 folded(Lanes a) { return _mm256_add_ps(a.low, a.high); }
#else
struct Lanes {
  float v[lane_count];
};
template <class Operation>
inline Lanes each(const Operation& operation) {
  Lanes out;
  for (std::size_t i = 0; i < lane_count; ++i) out.v[i] = operation(i);
  return out;
}
inline Lanes load(const float* at) {
  return each([&](std::size_t i) { return at[i]; });
}
inline void store(float* at, const Lanes& a) {
  for (std::size_t i = 0; i < lane_count; ++i) at[i] = a.v[i];
}
inline Lanes fill(float value) {
  return each([&](std::size_t) { return value; });
}
inline Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return each([&](std::size_t i) { return std::fmaf(a.v[i], b.v[i], c.v[i]); });
}
inline Lanes operator+(const Lanes& a, const Lanes& b) {
  return each([&](std::size_t i) { return a.v[i] + b.v[i]; });
}
inline Lanes operator*(const Lanes& a, const Lanes& b) {
  return each([&](std::size_t i) { return a.v[i] * b.v[i]; });
}
inline Lanes maximum(const Lanes& a, const Lanes& b) {
  return each([&](std::size_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes square_root(const Lanes& a) {
  return each([&](std::size_t i) { return std::sqrt(a.v[i]); });
}
inline std::uint32_t greater(const Lanes& a, const Lanes& b) {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < lane_count; ++i) mask |= static_cast<std::uint32_t>(a.v[i] > b.v[i]) << i;
  return mask;
}
inline std::uint32_t not_at_most(const Lanes& a, const Lanes& b) {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < lane_count; ++i) mask |= static_cast<std::uint32_t>(!(a.v[i] <= b.v[i])) << i;
  return mask;
}
#endif

#if !defined(__AVX512F__)
inline Lanes load_part(const float* at, std::size_t count) {
  float values[lane_count] = {};
  for (std::size_t i = 0; i < count; ++i) values[i] = at[i];
  return load(values);
}
#endif

// The sum of the lanes: each half onto the other until one is left.
inline float total(const Lanes& a) {
#if defined(__AVX2__)
  const __m256 eight = folded(a);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
  float sums[lane_count];
  store(sums, a);
  for (std::size_t half = lane_count / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
#endif
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
