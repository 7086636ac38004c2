// Part of train.cpp: vectors of sixteen floats, activations and losses; scores of the hidden neurons on 32 examples,
// several neurons side by side, and the outputs they add up to.
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
      return activate<ActivationKind::shifted_relu>(z, threshold);
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

// z = c·sum + b, for two vectors of sums per neuron.
template <std::size_t count>
void store_scores(const TrainingRun& run, std::size_t first, const Vec (&left)[count], const Vec (&right)[count], float* z) {
  const float scale = static_cast<float>(run.scale);
  for (std::size_t u = 0; u < count; ++u) {
    store(z + batch_lanes * u, scale * left[u] + run.bias[first + u]);
    store(z + batch_lanes * u + lanes, scale * right[u] + run.bias[first + u]);
  }
}

// z = c·⟨v, x⟩ + b for `count` neurons from `first` on, on the 32 examples of `columns`.
template <std::size_t count>
void score_tile(const TrainingRun& run, std::size_t first, const float* columns, float* z) {
  const std::size_t stride = run.stride();
  const float* weights = run.weights.data() + first * stride;
  Vec left[count] = {}, right[count] = {};
  for (std::size_t j = 0; j < run.inputs; ++j) {
    const Vec x0 = load(columns + batch_lanes * j), x1 = load(columns + batch_lanes * j + lanes);
    for (std::size_t u = 0; u < count; ++u) {
      const float w = weights[u * stride + j];
      left[u] += w * x0;
      right[u] += w * x1;
    }
  }
  store_scores(run, first, left, right, z);
}

#if defined(__AVX512F__)
// The same for signs, at half the multiply-adds: the sixteen sums ±w₀ ±w₁ ±w₂ ±w₃ of four weights fill one register, and
// a permutation looks up the one each of 16 examples needs. Weights past the last input are zero.
template <std::size_t count>
void score_tile_of_signs(const TrainingRun& run, std::size_t first, const float* columns, float* z) {
  const std::size_t stride = run.stride(), groups = (run.inputs + 3) / 4;
  const float* weights = run.weights.data() + first * stride;
  Vec sign[4], left[count] = {}, right[count] = {};
  for (unsigned bit = 0; bit < 4; ++bit)
    for (unsigned lane = 0; lane < lanes; ++lane) sign[bit][lane] = lane >> bit & 1 ? -1.0f : 1.0f;
  for (std::size_t g = 0; g < groups; ++g) {
    const __m512i x0 = _mm512_load_si512(columns + batch_lanes * g);
    const __m512i x1 = _mm512_load_si512(columns + batch_lanes * g + lanes);
    for (std::size_t u = 0; u < count; ++u) {
      const float* w = weights + u * stride + 4 * g;
      const Vec table = (w[0] * sign[0] + w[1] * sign[1]) + (w[2] * sign[2] + w[3] * sign[3]);
      left[u] += reinterpret_cast<Vec>(_mm512_permutexvar_ps(x0, reinterpret_cast<__m512>(table)));
      right[u] += reinterpret_cast<Vec>(_mm512_permutexvar_ps(x1, reinterpret_cast<__m512>(table)));
    }
  }
  store_scores(run, first, left, right, z);
}
#endif

template <std::size_t count>
void score(const TrainingRun& run, std::size_t first, const float* columns, float* z) {
#if defined(__AVX512F__)
  if (run.signs) return score_tile_of_signs<count>(run, first, columns, z);
#endif
  score_tile<count>(run, first, columns, z);
}

template <class Before, class After>
void for_tiles(const TrainingRun& run, const float* columns, float* scores, bool keep, Before before, After after) {
  std::size_t i = 0;
  for (; i + tile <= run.width; i += tile) {
    float* z = keep ? scores + batch_lanes * i : scores;
    before(i, tile);
    score<tile>(run, i, columns, z);
    after(i, tile, z);
  }
  for (; i < run.width; ++i) {
    float* z = keep ? scores + batch_lanes * i : scores;
    before(i, 1);
    score<1>(run, i, columns, z);
    after(i, 1, z);
  }
}

// The outputs of the network on 32 examples, summed tile by tile, and how many neurons fired on them.
struct Outputs {
  Vec left, right;
  std::uint32_t valid;  // lanes that hold an example
  std::uint64_t fired = 0;

  Outputs(const TrainingRun& run, std::size_t count)
      : left(fill(static_cast<float>(run.offset))), right(left), valid(count == batch_lanes ? ~0u : (1u << count) - 1) {}

  void add(const TrainingRun& run, std::size_t first, std::size_t tiles, const float* z) {
    for (std::size_t u = 0; u < tiles; ++u, z += batch_lanes) {
      left += run.output[first + u] * activate(run.activation, load(z), run.threshold);
      right += run.output[first + u] * activate(run.activation, load(z + lanes), run.threshold);
      fired += static_cast<std::uint64_t>(std::popcount(between(z, run.threshold, infinity) & valid));
    }
  }

  void write(float* values) const {
    store(values, left);
    store(values + lanes, right);
  }
};

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
