// Vectors of sixteen floats, activations and losses of the training kernel.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/train.hpp"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace fewfire::FEWFIRE_ISA {
namespace {

// Sixteen floats; the compiler splits them for narrower instruction sets. A minibatch of 32 is two of them.
typedef float Vec __attribute__((vector_size(64)));
constexpr std::size_t lanes = 16, batch_lanes = 32;

// Neurons scored side by side: as many as keep their accumulators in registers.
#if defined(__AVX512F__)
constexpr std::size_t tile = 8;
#elif defined(__AVX2__)
constexpr std::size_t tile = 3;
#else
constexpr std::size_t tile = 2;
#endif

Vec load(const float* at) { return *reinterpret_cast<const Vec*>(at); }
void store(float* at, Vec value) { *reinterpret_cast<Vec*>(at) = value; }
Vec fill(float value) { return value - Vec{}; }
Vec maximum(Vec a, Vec b) { return a > b ? a : b; }
Vec minimum(Vec a, Vec b) { return a < b ? a : b; }

// Pairwise, so that sixteen additions do not wait for each other.
float sum(Vec v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(reinterpret_cast<__m512>(v));
#else
  float parts[lanes];
  std::memcpy(parts, &v, sizeof parts);
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  return parts[0];
#endif
}

// The sum of those of 32 values whose bit is set.
float masked_sum(const float* values, std::uint32_t mask) {
#if defined(__AVX512F__)
  const __m512 first = _mm512_maskz_load_ps(static_cast<__mmask16>(mask), values);
  const __m512 second = _mm512_maskz_load_ps(static_cast<__mmask16>(mask >> 16), values + 16);
  return _mm512_reduce_add_ps(_mm512_add_ps(first, second));
#else
  float total = 0;
  for (; mask; mask &= mask - 1) total += values[std::countr_zero(mask)];
  return total;
#endif
}

// Bit e is set iff low < z[e] < high, for 32 values.
std::uint32_t between(const float* z, float low, float high) {
#if defined(__AVX512F__)
  const __m512 a = _mm512_load_ps(z), b = _mm512_load_ps(z + 16), l = _mm512_set1_ps(low), h = _mm512_set1_ps(high);
  const std::uint32_t first = _mm512_cmp_ps_mask(a, l, _CMP_GT_OQ) & _mm512_cmp_ps_mask(a, h, _CMP_LT_OQ);
  const std::uint32_t second = _mm512_cmp_ps_mask(b, l, _CMP_GT_OQ) & _mm512_cmp_ps_mask(b, h, _CMP_LT_OQ);
  return first | second << 16;
#else
  std::uint32_t mask = 0;
  for (std::size_t e = 0; e < batch_lanes; ++e) mask |= static_cast<std::uint32_t>(z[e] > low && z[e] < high) << e;
  return mask;
#endif
}

template <ActivationKind kind>
Vec activate(Vec z, float threshold) {
  if constexpr (kind == ActivationKind::relu) return maximum(z, Vec{});
  if constexpr (kind == ActivationKind::relu6) return minimum(maximum(z, Vec{}), fill(6.0f));
  return z > fill(threshold) ? z : Vec{};
}

Vec activate(ActivationKind kind, Vec z, float threshold) {
  switch (kind) {
    case ActivationKind::relu:
      return activate<ActivationKind::relu>(z, threshold);
    case ActivationKind::relu6:
      return activate<ActivationKind::relu6>(z, threshold);
    default:
      return activate<ActivationKind::shifted>(z, threshold);
  }
}

constexpr float infinity = std::numeric_limits<float>::infinity();
float slope_limit(ActivationKind kind) { return kind == ActivationKind::relu6 ? 6.0f : infinity; }

float loss_value(LossKind loss, float f, float y) {
  switch (loss) {
    case LossKind::hinge:
      return std::max(1.0f - y * f, 0.0f);
    case LossKind::logistic:
      return y * f > 0 ? std::log1p(std::exp(-y * f)) : -y * f + std::log1p(std::exp(y * f));
    case LossKind::square:
      return (f - y) * (f - y) / 2;
    default:
      return std::abs(f - y);
  }
}

float loss_slope(LossKind loss, float f, float y) {
  switch (loss) {
    case LossKind::hinge:
      return y * f < 1.0f ? -y : 0.0f;
    case LossKind::logistic:
      return -y / (1.0f + std::exp(y * f));
    case LossKind::square:
      return f - y;
    default:
      return f > y ? 1.0f : f < y ? -1.0f : 0.0f;
  }
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
