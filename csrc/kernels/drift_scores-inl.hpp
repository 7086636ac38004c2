// Part of drift_lists.cpp: scores. Those that decide activity come from one function, `pair_scores`, so that a pair's
// score does not depend on the list it was found in: 16 lanes, each summing every 16th product in turn, then lanes l and
// l + 8, l + 4, l + 2, l + 1 added. Variants with fused multiply-add round once per product, the baseline twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vectors-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr std::size_t lanes = 16;
constexpr std::size_t pairs = 8;  // scored together: eight sums hide the latency and share the weights
using Floats [[gnu::vector_size(64), gnu::may_alias]] = float;
using Scores [[gnu::vector_size(32), gnu::may_alias]] = float;
using UnalignedFloats [[gnu::vector_size(64), gnu::may_alias, gnu::aligned(4)]] = float;

[[gnu::always_inline]] inline Floats load(const float* from) { return *reinterpret_cast<const Floats*>(from); }
[[gnu::always_inline]] inline void store(float* to, Floats values) { *reinterpret_cast<Floats*>(to) = values; }
[[gnu::always_inline]] inline Floats spread(float value) {
  return Floats{value, value, value, value, value, value, value, value,
                value, value, value, value, value, value, value, value};
}

// Bit j: values[j] > bound.
[[gnu::always_inline]] inline std::uint32_t above(Scores values, float bound) {
#if defined(__AVX2__)
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps((__m256)values, _mm256_set1_ps(bound), _CMP_GT_OQ)));
#else
  std::uint32_t mask = 0;
  for (std::size_t j = 0; j < pairs; ++j) mask |= std::uint32_t{values[j] > bound} << j;
  return mask;
#endif
}

// Writes the ids of the set bits of mask to `out`, eight slots of which may be written; returns how many.
[[gnu::always_inline]] inline std::size_t compress(const std::uint32_t* ids, std::uint32_t mask, std::uint32_t* out) {
#if defined(__AVX512VL__)
  const auto kept = _mm256_maskz_compress_epi32(static_cast<__mmask8>(mask), _mm256_loadu_si256((const __m256i*)ids));
  _mm256_storeu_si256((__m256i*)out, kept);
  return static_cast<std::size_t>(__builtin_popcount(mask));
#else
  std::size_t count = 0;
  for (; mask != 0; mask &= mask - 1) out[count++] = ids[__builtin_ctz(mask)];
  return count;
#endif
}
[[gnu::always_inline]] inline void compress(Scores values, std::uint32_t mask, float* out) {
#if defined(__AVX512VL__)
  _mm256_storeu_ps(out, _mm256_maskz_compress_ps(static_cast<__mmask8>(mask), (__m256)values));
#else
  for (; mask != 0; mask &= mask - 1) *out++ = values[__builtin_ctz(mask)];
#endif
}

// The sum of all lanes: l and l + 8, l + 4, l + 2, l + 1 added.
[[gnu::always_inline]] inline float sum_lanes(Floats v) {
  float half[lanes / 2];
  for (std::size_t l = 0; l < 8; ++l) half[l] = v[l] + v[l + 8];
  for (std::size_t l = 0; l < 4; ++l) half[l] += half[l + 4];
  return (half[0] + half[2]) + (half[1] + half[3]);
}

// The sums of the lanes of eight vectors: l and l + 8, l + 4, l + 2, l + 1 added.
template <class Result, class Vector>
[[gnu::always_inline]] inline Result fold(const Vector* s) {
  Vector t[4], u[2];
#pragma GCC unroll 4
  for (std::size_t j = 0; j < 4; ++j) {
    const Vector a = s[2 * j], b = s[2 * j + 1];
    t[j] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
           __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
#pragma GCC unroll 2
  for (std::size_t j = 0; j < 2; ++j) {
    const Vector a = t[2 * j], b = t[2 * j + 1];
    u[j] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
  const Vector v = __builtin_shufflevector(u[0], u[1], 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
                   __builtin_shufflevector(u[0], u[1], 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
  return Result(__builtin_shufflevector(v, v, 0, 2, 4, 6, 8, 10, 12, 14) +
                __builtin_shufflevector(v, v, 1, 3, 5, 7, 9, 11, 13, 15));
}

// ⟨w, x_id⟩ for eight rows.
[[gnu::noinline]] Scores pair_scores(const float* w, const float* rows, std::size_t stride, const std::uint32_t* ids) {
  const float* x[pairs];
  Floats s[pairs];
#pragma GCC unroll 8
  for (std::size_t j = 0; j < pairs; ++j) {
    x[j] = rows + ids[j] * stride;
    s[j] = load(w) * load(x[j]);
  }
  for (std::size_t at = lanes; at < stride; at += lanes) {
    const Floats weights = load(w + at);
#pragma GCC unroll 8
    for (std::size_t j = 0; j < pairs; ++j) s[j] += weights * load(x[j] + at);
  }
  return fold<Scores>(s);
}

// Calls use(block, mask) for the ids in blocks of eight; the last block is padded with ids of its own, which its mask
// leaves out.
template <class Use>
[[gnu::always_inline]] inline void for_blocks(const std::uint32_t* ids, std::size_t count, const Use& use) {
  std::size_t at = 0;
  for (; at + pairs <= count; at += pairs) use(ids + at, 0xffu);
  if (at == count) return;
  std::uint32_t padded[pairs];
  for (std::size_t j = 0; j < pairs; ++j) padded[j] = ids[std::min(at + j, count - 1)];
  use(padded, (1u << (count - at)) - 1);
}

#if defined(__AVX512F__)
constexpr std::size_t tile = 4;  // vectors of examples of one register tile
#else
constexpr std::size_t tile = 1;
#endif
constexpr std::size_t block_rows = 4;

// out[r][i] = ⟨w_r, x_i⟩ for four rows and `count`·16 examples from `transposed` (inputs × columns).
template <std::size_t count>
void score_tile(const float* const* w, const float* transposed, std::size_t inputs, std::size_t columns, float* out) {
  Floats sums[block_rows][count] = {};
  for (std::size_t k = 0; k < inputs; ++k) {
    Floats x[count];
    for (std::size_t v = 0; v < count; ++v) x[v] = load(transposed + k * columns + v * lanes);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < block_rows; ++r) {
      const Floats weight = spread(w[r][k]);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < count; ++v) sums[r][v] += weight * x[v];
    }
  }
  for (std::size_t r = 0; r < block_rows; ++r)
    for (std::size_t v = 0; v < count; ++v) store(out + r * columns + v * lanes, sums[r][v]);
}

// The same for all examples; `out` is 4 × columns.
inline void score_anchors(const float* const* w, const float* transposed, std::size_t inputs, std::size_t columns,
                          float* out) {
  std::size_t at = 0;
  for (; at + tile * lanes <= columns; at += tile * lanes)
    score_tile<tile>(w, transposed + at, inputs, columns, out + at);
  for (; at < columns; at += lanes) score_tile<1>(w, transposed + at, inputs, columns, out + at);
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
