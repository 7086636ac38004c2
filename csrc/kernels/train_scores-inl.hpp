// Part of train.cpp: scores of the hidden neurons on 32 examples, several neurons side by side, and the outputs they add
// up to.
//
// Every sum has one order on all instruction sets, and nothing is contracted (CMakeLists.txt). `fused` is the exception:
// it rounds once where there is an instruction for it. Where its second factor is a sign the product is exact, and it
// rounds once everywhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/train.hpp"
#include "kernels/train_vectors-inl.hpp"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace fewfire::FEWFIRE_ISA {
namespace {

// Neurons scored side by side: as many as keep their accumulators in registers.
#if defined(__AVX512F__)
constexpr std::size_t tile = 8;
#elif defined(__AVX2__)
constexpr std::size_t tile = 2;
#else
constexpr std::size_t tile = 1;
#endif

// `value` where low < z < high, elsewhere 0.
inline Vec where_between(Vec z, float low, float high, Vec value) {
  return each([&](std::size_t p) { return z.part[p] > low && z.part[p] < high ? value.part[p] : Part{}; });
}

// a·b + c, rounded once with AVX2 and AVX-512.
inline Vec fused(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return {_mm512_fmadd_ps(a.part[0], b.part[0], c.part[0])};
#elif defined(__AVX2__)
  return each([&](std::size_t p) -> Part { return _mm256_fmadd_ps(a.part[p], b.part[p], c.part[p]); });
#else
  return a * b + c;
#endif
}

// Each half onto the other until one is left, so that sixteen additions do not wait for each other.
float sum(Vec v) {
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Four __attribute__((vector_size(16)));
  Eight eight[2];
  std::memcpy(eight, &v, sizeof v);
  eight[0] += eight[1];
  Four four[2];
  std::memcpy(four, &eight[0], sizeof four);
  four[0] += four[1];
  return (four[0][0] + four[0][2]) + (four[0][1] + four[0][3]);
}

// The sum of values[e] over those of 32 examples with low < z[e] < high.
float sum_between(const float* values, const float* z, float low, float high) {
  return sum(where_between(load(z), low, high, load(values)) +
             where_between(load(z + lanes), low, high, load(values + lanes)));
}

// Bit e is set iff low < z[e] < high, for 32 values.
std::uint32_t between(const float* z, float low, float high) {
#if defined(__AVX512F__)
  const __m512 a = _mm512_load_ps(z), b = _mm512_load_ps(z + 16), l = _mm512_set1_ps(low), h = _mm512_set1_ps(high);
  const std::uint32_t first = _mm512_cmp_ps_mask(a, l, _CMP_GT_OQ) & _mm512_cmp_ps_mask(a, h, _CMP_LT_OQ);
  const std::uint32_t second = _mm512_cmp_ps_mask(b, l, _CMP_GT_OQ) & _mm512_cmp_ps_mask(b, h, _CMP_LT_OQ);
  return first | second << 16;
#elif defined(__SSE2__)
  std::uint32_t mask = 0;
  const __m128 l = _mm_set1_ps(low), h = _mm_set1_ps(high);
  for (std::size_t e = 0; e < batch_lanes; e += 4) {
    const __m128 four = _mm_load_ps(z + e);
    mask |= static_cast<std::uint32_t>(_mm_movemask_ps(_mm_and_ps(_mm_cmpgt_ps(four, l), _mm_cmplt_ps(four, h)))) << e;
  }
  return mask;
#else
  std::uint32_t mask = 0;
  for (std::size_t e = 0; e < batch_lanes; ++e) mask |= static_cast<std::uint32_t>(z[e] > low && z[e] < high) << e;
  return mask;
#endif
}

// z = c·sum + b, for two vectors of sums per neuron.
template <std::size_t count>
void store_scores(const TrainingRun& run, std::size_t first, const Vec (&left)[count], const Vec (&right)[count], float* z) {
  const float scale = static_cast<float>(run.scale);
  for (std::size_t u = 0; u < count; ++u) {
    const Vec bias = fill(run.bias[first + u]);
    store(z + batch_lanes * u, scale * left[u] + bias);
    store(z + batch_lanes * u + lanes, scale * right[u] + bias);
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
      const Vec w = fill(weights[u * stride + j]);
      left[u] = fused(w, x0, left[u]);
      right[u] = fused(w, x1, right[u]);
    }
  }
  store_scores(run, first, left, right, z);
}

// The same for signs, with the sum in one order everywhere: Σ_g (±w₀ ±w₁) + (±w₂ ±w₃) over groups of four weights, those
// past the last input being zero. The sums of a group are looked up where a register holds them, at half the multiply-adds
// or fewer: all sixteen with AVX-512; with AVX2 the eight with +w₃, of which the others are the negatives.
template <std::size_t count>
void score_tile_of_signs(const TrainingRun& run, std::size_t first, const float* columns, float* z) {
  const std::size_t stride = run.stride(), groups = (run.inputs + 3) / 4;
  const float* weights = run.weights.data() + first * stride;
#if defined(__AVX512F__)
  Vec sign[4], left[count] = {}, right[count] = {};
  for (unsigned bit = 0; bit < 4; ++bit)
    for (unsigned lane = 0; lane < lanes; ++lane) sign[bit].part[0][lane] = lane >> bit & 1 ? -1.0f : 1.0f;
  for (std::size_t g = 0; g < groups; ++g) {
    const __m512i x0 = _mm512_load_si512(columns + batch_lanes * g);
    const __m512i x1 = _mm512_load_si512(columns + batch_lanes * g + lanes);
    for (std::size_t u = 0; u < count; ++u) {
      const float* w = weights + u * stride + 4 * g;
      const Vec table = fused(fill(w[1]), sign[1], w[0] * sign[0]) + fused(fill(w[3]), sign[3], w[2] * sign[2]);
      left[u] += Vec{_mm512_permutexvar_ps(x0, table.part[0])};
      right[u] += Vec{_mm512_permutexvar_ps(x1, table.part[0])};
    }
  }
  store_scores(run, first, left, right, z);
#elif defined(__AVX2__)
  const __m256 sign[3] = {_mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1), _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1),
                          _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1)};
  __m256 sums[count][2 * parts];
  for (auto& neuron : sums)
    for (__m256& part : neuron) part = _mm256_setzero_ps();
  for (std::size_t g = 0; g < groups; ++g, columns += 2 * batch_lanes) {
    __m256 table[count];
    for (std::size_t u = 0; u < count; ++u) {
      const float* w = weights + u * stride + 4 * g;
      const __m256 front = _mm256_mul_ps(_mm256_set1_ps(w[0]), sign[0]);
      table[u] = _mm256_add_ps(_mm256_fmadd_ps(_mm256_set1_ps(w[1]), sign[1], front),
                               _mm256_fmadd_ps(_mm256_set1_ps(w[2]), sign[2], _mm256_set1_ps(w[3])));
    }
    for (std::size_t part = 0; part < 2 * parts; ++part) {
      const __m256i index = _mm256_load_si256(reinterpret_cast<const __m256i*>(columns + 8 * part));
      const __m256 last = _mm256_load_ps(columns + batch_lanes + 8 * part);
      for (std::size_t u = 0; u < count; ++u)
        sums[u][part] = _mm256_fmadd_ps(_mm256_permutevar8x32_ps(table[u], index), last, sums[u][part]);
    }
  }
  Vec left[count], right[count];
  for (std::size_t u = 0; u < count; ++u) {
    std::memcpy(&left[u], sums[u], sizeof(Vec));
    std::memcpy(&right[u], sums[u] + parts, sizeof(Vec));
  }
  store_scores(run, first, left, right, z);
#else
  Vec left[count] = {}, right[count] = {};
  for (std::size_t g = 0; g < groups; ++g, columns += 4 * batch_lanes)
    for (std::size_t u = 0; u < count; ++u) {
      const float* w = weights + u * stride + 4 * g;
      const auto group = [&](const float* x) {
        return (w[0] * load(x) + w[1] * load(x + batch_lanes)) + (w[2] * load(x + 2 * batch_lanes) + w[3] * load(x + 3 * batch_lanes));
      };
      left[u] += group(columns);
      right[u] += group(columns + lanes);
    }
  store_scores(run, first, left, right, z);
#endif
}

template <std::size_t count>
void score(const TrainingRun& run, std::size_t first, const float* columns, float* z) {
  if (run.signs)
    score_tile_of_signs<count>(run, first, columns, z);
  else
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
