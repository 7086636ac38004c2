// Sixteen floats with a fused multiply-add that rounds once on every instruction set, so that scores have the same bits
// everywhere. Internal linkage, as all of a kernel file.
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
Lanes load(const float* at) { return {_mm512_loadu_ps(at)}; }
Lanes fill(float value) { return {_mm512_set1_ps(value)}; }
Lanes fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
Lanes minimum(Lanes a, Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
Lanes maximum(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
Lanes square_root(Lanes a) { return {_mm512_sqrt_ps(a.v)}; }
float total(Lanes a) { return _mm512_reduce_add_ps(a.v); }
// One bit a lane; false where either side is no number.
std::uint32_t greater(Lanes a, Lanes b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ); }
#elif defined(__AVX2__)
struct Lanes {
  __m256 low, high;
};
Lanes load(const float* at) { return {_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)}; }
Lanes fill(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
Lanes operator+(Lanes a, Lanes b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
Lanes operator*(Lanes a, Lanes b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
Lanes minimum(Lanes a, Lanes b) { return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)}; }
Lanes maximum(Lanes a, Lanes b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
Lanes square_root(Lanes a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
float total(Lanes a) {
  const __m256 eight = _mm256_add_ps(a.low, a.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
std::uint32_t greater(Lanes a, Lanes b) {
  const int low = _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ));
  const int high = _mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ));
  return static_cast<std::uint32_t>(low | high << 8);
}
#else
struct Lanes {
  float v[lane_count];
};
template <class Operation>
Lanes each(const Operation& operation) {
  Lanes out;
  for (std::size_t i = 0; i < lane_count; ++i) out.v[i] = operation(i);
  return out;
}
Lanes load(const float* at) {
  return each([&](std::size_t i) { return at[i]; });
}
Lanes fill(float value) {
  return each([&](std::size_t) { return value; });
}
Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return each([&](std::size_t i) { return std::fmaf(a.v[i], b.v[i], c.v[i]); });
}
Lanes operator+(const Lanes& a, const Lanes& b) {
  return each([&](std::size_t i) { return a.v[i] + b.v[i]; });
}
Lanes operator*(const Lanes& a, const Lanes& b) {
  return each([&](std::size_t i) { return a.v[i] * b.v[i]; });
}
Lanes minimum(const Lanes& a, const Lanes& b) {
  return each([&](std::size_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
Lanes maximum(const Lanes& a, const Lanes& b) {
  return each([&](std::size_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
Lanes square_root(const Lanes& a) {
  return each([&](std::size_t i) { return std::sqrt(a.v[i]); });
}
float total(const Lanes& a) {
  float sum = 0;
  for (const float value : a.v) sum += value;
  return sum;
}
std::uint32_t greater(const Lanes& a, const Lanes& b) {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < lane_count; ++i) mask |= static_cast<std::uint32_t>(a.v[i] > b.v[i]) << i;
  return mask;
}
#endif

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
