#include "kernels/halfspace.hpp"

#include <cmath>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace fewfire::FEWFIRE_ISA {
namespace {

// Sixteen floats with a fused multiply-add that rounds once on every instruction set, so that scores have the same bits
// everywhere.

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
Lanes maximum(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
Lanes square_root(Lanes a) { return {_mm512_sqrt_ps(a.v)}; }
float total(Lanes a) { return _mm512_reduce_add_ps(a.v); }
// One bit per lane; false where either side is no number.
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

// The exact scan.

// Vectors of points scored together: as many as keep their sums in registers beside tile_queries queries.
#if defined(__AVX512F__)
constexpr std::size_t tile_vectors = 4;
#else
constexpr std::size_t tile_vectors = 1;
#endif

template <std::size_t Queries>
void scan_tile(const float* points, const float* offsets, std::size_t dimension, const float* tile,
               const float* thresholds, std::uint64_t* hits) {
  for (std::size_t q = 0; q < Queries; ++q) hits[q] = 0;
  for (std::size_t first = 0; first < block_points; first += tile_vectors * lane_count) {
    Lanes sums[Queries][tile_vectors];
    for (std::size_t q = 0; q < Queries; ++q)
      for (std::size_t v = 0; v < tile_vectors; ++v) sums[q][v] = fill(0.0f);
    for (std::size_t j = 0; j < dimension; ++j) {
      Lanes coordinates[tile_vectors];
      for (std::size_t v = 0; v < tile_vectors; ++v)
        coordinates[v] = load(points + j * block_points + first + v * lane_count);
      for (std::size_t q = 0; q < Queries; ++q) {
        const Lanes query = fill(tile[j * Queries + q]);
        for (std::size_t v = 0; v < tile_vectors; ++v) sums[q][v] = fma(coordinates[v], query, sums[q][v]);
      }
    }
    for (std::size_t q = 0; q < Queries; ++q)
      for (std::size_t v = 0; v < tile_vectors; ++v) {
        const std::size_t at = first + v * lane_count;
        const std::uint64_t above = greater(sums[q][v] + load(offsets + at), fill(thresholds[q]));
        hits[q] |= above << at;
      }
  }
}

// The screened scan.

constexpr std::size_t vectors = block_points / lane_count;

#if defined(__AVX512VNNI__)
using Sums = __m512i;
Sums start(std::int32_t value) { return _mm512_set1_epi32(value); }
using Codes = __m512i;
using Word = __m512i;
Codes load_codes(const std::uint8_t* at) { return _mm512_loadu_si512(at); }
Word load_word(std::int32_t word) { return _mm512_set1_epi32(word); }
// Written as assembly because GCC 12 copies the sums of its intrinsic to memory and back in each step.
Sums add_products(Sums sums, Codes codes, Word query) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(query));
  return sums;
}
Lanes to_real(const Sums& sums) { return {_mm512_cvtepi32_ps(sums)}; }
#else
struct Sums {
  std::int32_t v[lane_count];
};
Sums start(std::int32_t value) {
  Sums out;
  for (std::int32_t& sum : out.v) sum = value;
  return out;
}
using Codes = const std::uint8_t*;
struct Word {
  std::int8_t parts[4];
};
Codes load_codes(const std::uint8_t* at) { return at; }
Word load_word(std::int32_t word) {
  Word out;
  std::memcpy(out.parts, &word, 4);
  return out;
}
Sums add_products(Sums sums, Codes codes, const Word& query) {
  const auto& parts = query.parts;
  for (std::size_t i = 0; i < lane_count; ++i)
    sums.v[i] += codes[4 * i] * parts[0] + codes[4 * i + 1] * parts[1] + codes[4 * i + 2] * parts[2] +
                 codes[4 * i + 3] * parts[3];
  return sums;
}
Lanes to_real(const Sums& sums) {
  float values[lane_count];
  for (std::size_t i = 0; i < lane_count; ++i) values[i] = static_cast<float>(sums.v[i]);
  return load(values);
}
#endif

template <std::size_t Queries>
void screen_tile(const ScreenBlock& block, std::size_t quads, const std::int32_t* tile, const std::int32_t* bias,
                 const float* steps, const float* low, const float* high, std::uint64_t* maybe, std::uint64_t* sure) {
  // Unrolled by hand: an index known only at run time would keep the sums in memory.
  Sums sums[Queries][vectors];
#pragma GCC unroll 6
  for (std::size_t q = 0; q < Queries; ++q) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) sums[q][v] = start(bias[q]);
  }
  for (std::size_t k = 0; k < quads; ++k) {
    Codes codes[vectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) codes[v] = load_codes(block.codes + (k * vectors + v) * 4 * lane_count);
#pragma GCC unroll 6
    for (std::size_t q = 0; q < Queries; ++q) {
      const Word word = load_word(tile[k * Queries + q]);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < vectors; ++v) sums[q][v] = add_products(sums[q][v], codes[v], word);
    }
  }
#pragma GCC unroll 6
  for (std::size_t q = 0; q < Queries; ++q) {
    std::uint64_t above = 0, clear = 0;
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t at = v * lane_count;
      const Lanes score =
          fma(to_real(sums[q][v]) * load(block.scales + at), fill(steps[q]), load(block.offsets + at));
      above |= std::uint64_t{greater(score, fill(low[q]))} << at;
      clear |= std::uint64_t{greater(score, fill(high[q]))} << at;
    }
    maybe[q] = above, sure[q] = clear;
  }
}

}  // namespace

void scan_block(const float* points, const float* offsets, std::size_t dimension, const float* packed,
                const float* thresholds, std::size_t queries, std::uint64_t* hits) {
  for (; queries >= tile_queries; queries -= tile_queries) {
    scan_tile<tile_queries>(points, offsets, dimension, packed, thresholds, hits);
    packed += tile_queries * dimension, thresholds += tile_queries, hits += tile_queries;
  }
  switch (queries) {
    case 1: return scan_tile<1>(points, offsets, dimension, packed, thresholds, hits);
    case 2: return scan_tile<2>(points, offsets, dimension, packed, thresholds, hits);
    case 3: return scan_tile<3>(points, offsets, dimension, packed, thresholds, hits);
    case 4: return scan_tile<4>(points, offsets, dimension, packed, thresholds, hits);
    case 5: return scan_tile<5>(points, offsets, dimension, packed, thresholds, hits);
    default: return;
  }
}

void score_pairs(const float* const* points, const float* offsets, const float* const* queries, std::size_t dimension,
                 std::size_t pairs, float* scores) {
  // A sum waits for its own last step only, so several pairs advance side by side.
  constexpr std::size_t together = 8;
  std::size_t k = 0;
  for (; k + together <= pairs; k += together) {
    float sums[together] = {};
    for (std::size_t j = 0; j < dimension; ++j)
      for (std::size_t i = 0; i < together; ++i) sums[i] = std::fmaf(points[k + i][j], queries[k + i][j], sums[i]);
    for (std::size_t i = 0; i < together; ++i) scores[k + i] = sums[i] + offsets[k + i];
  }
  for (; k < pairs; ++k) {
    float sum = 0;
    for (std::size_t j = 0; j < dimension; ++j) sum = std::fmaf(points[k][j], queries[k][j], sum);
    scores[k] = sum + offsets[k];
  }
}

float quick_product(const float* point, const float* query, std::size_t dimension) {
  constexpr std::size_t chains = 4;
  Lanes sums[chains] = {fill(0.0f), fill(0.0f), fill(0.0f), fill(0.0f)};
  std::size_t j = 0;
  for (; j + chains * lane_count <= dimension; j += chains * lane_count)
    for (std::size_t c = 0; c < chains; ++c)
      sums[c] = fma(load(point + j + c * lane_count), load(query + j + c * lane_count), sums[c]);
  for (; j + lane_count <= dimension; j += lane_count) sums[0] = fma(load(point + j), load(query + j), sums[0]);
  float sum = total((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; j < dimension; ++j) sum = std::fmaf(point[j], query[j], sum);
  return sum;
}

void screen_block(const ScreenBlock& block, std::size_t quads, const ScreenQueries& queries, const float* low,
                  const float* high, std::size_t first, std::size_t count, std::uint64_t* maybe, std::uint64_t* sure) {
  const auto tile = [&]<std::size_t Queries>() {
    screen_tile<Queries>(block, quads, queries.packed + first * quads, queries.bias + first, queries.steps + first, low,
                         high, maybe, sure);
  };
  switch (count) {
    case 6: return tile.template operator()<6>();
    case 5: return tile.template operator()<5>();
    case 4: return tile.template operator()<4>();
    case 3: return tile.template operator()<3>();
    case 2: return tile.template operator()<2>();
    case 1: return tile.template operator()<1>();
    default: return;
  }
}

void bound_children(const NodeBounds& node, std::size_t dimension, const NodeQuery& query, std::uint32_t& visit,
                    std::uint32_t& inside) {
  Lanes sums[2] = {fill(0.0f), fill(0.0f)};  // two chains, so that one waits for the other less
  std::size_t j = 0;
  for (; j + 2 <= dimension; j += 2) {
    sums[0] = fma(load(node.centres + j * node_children), fill(query.row[j]), sums[0]);
    sums[1] = fma(load(node.centres + (j + 1) * node_children), fill(query.row[j + 1]), sums[1]);
  }
  if (j < dimension) sums[0] = fma(load(node.centres + j * node_children), fill(query.row[j]), sums[0]);
  const Lanes centre = sums[0] + sums[1];
  const Lanes reach = fma(load(node.along), fill(query.along), load(node.across) * fill(query.across));
  const Lanes upper = centre + reach + load(node.high_offset);
  const Lanes lower = fma(reach, fill(-1.0f), centre) + load(node.low_offset);
  inside = greater(lower, fill(query.high));
  visit = greater(upper, fill(query.low));
  if (visit == 0 || query.inverse_norm == 0) return;
  // Cosines are right to (d + 8)·2^-24; four times that under the root keeps the sine an upper bound near angle 0.
  const float error = 4.0f * static_cast<float>(dimension + 8) * 0x1p-24f;
  const Lanes cosine = centre * load(node.inverse_norm) * fill(query.inverse_norm);
  const Lanes square = cosine * cosine;
  const Lanes sine = square_root(maximum(fma(square, fill(-1.0f), fill(1.0f + error)), fill(0.0f)));
  const Lanes within = fma(cosine, load(node.cone_cosine), sine * load(node.cone_sine)) + fill(2 * error);
  const Lanes cone = fma(maximum(within, fill(0.0f)) * load(node.cone_norm), fill(query.norm), load(node.high_offset));
  visit &= greater(cone, fill(query.low)) | greater(cosine + fill(error), load(node.cone_cosine));
}

}  // namespace fewfire::FEWFIRE_ISA
