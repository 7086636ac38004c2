#include "kernels/halfspace.hpp"

#include <cmath>
#include <cstring>

#include "kernels/lanes-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// The exact scan.

// Vectors of points scored together: as many as keep their sums in registers next to tile_queries queries.
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

#if defined(__AVX512F__)
// Sixteen rows of sixteen numbers become columns: pairs of rows interleaved, then pairs of pairs, then quarters.
inline void transpose(__m512 (&rows)[lane_count]) {
  __m512 pairs[lane_count], fours[lane_count];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < lane_count; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < lane_count; i += 4) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(pairs[i + j]), b = _mm512_castps_pd(pairs[i + 2 + j]);
      fours[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      fours[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
  // fours[4·g + c]: of rows 4·g … 4·g + 3, columns c, c + 4, c + 8, c + 12.
#pragma GCC unroll 4
  for (std::size_t c = 0; c < 4; ++c) {
    constexpr int even = 0x88, odd = 0xdd;  // quarters 0 and 2, or 1 and 3, of both
    const __m512 low_even = _mm512_shuffle_f32x4(fours[c], fours[4 + c], even);
    const __m512 low_odd = _mm512_shuffle_f32x4(fours[c], fours[4 + c], odd);
    const __m512 high_even = _mm512_shuffle_f32x4(fours[8 + c], fours[12 + c], even);
    const __m512 high_odd = _mm512_shuffle_f32x4(fours[8 + c], fours[12 + c], odd);
    rows[c] = _mm512_shuffle_f32x4(low_even, high_even, even);
    rows[4 + c] = _mm512_shuffle_f32x4(low_odd, high_odd, even);
    rows[8 + c] = _mm512_shuffle_f32x4(low_even, high_even, odd);
    rows[12 + c] = _mm512_shuffle_f32x4(low_odd, high_odd, odd);
  }
}

// The scores of sixteen points for one query: a lane is a point, so that the one order costs a transposition.
void score_points(const float* const* points, const float* offsets, const float* query, std::size_t dimension,
                  float* scores) {
  __m512 sums = _mm512_setzero_ps();
  std::size_t j = 0;
  for (; j + lane_count <= dimension; j += lane_count) {
    __m512 columns[lane_count];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < lane_count; ++i) columns[i] = _mm512_loadu_ps(points[i] + j);
    transpose(columns);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < lane_count; ++i) sums = _mm512_fmadd_ps(columns[i], _mm512_set1_ps(query[j + i]), sums);
  }
  if (j < dimension) {
    const auto rest = static_cast<__mmask16>((1u << (dimension - j)) - 1);
    __m512 columns[lane_count];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < lane_count; ++i) columns[i] = _mm512_maskz_loadu_ps(rest, points[i] + j);
    transpose(columns);
    for (std::size_t i = 0; j + i < dimension; ++i)
      sums = _mm512_fmadd_ps(columns[i], _mm512_set1_ps(query[j + i]), sums);
  }
  _mm512_storeu_ps(scores, _mm512_add_ps(sums, _mm512_loadu_ps(offsets)));
}
#endif

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

template <std::size_t Queries, std::size_t Parts>
void screen_tile(const ScreenBlock& block, std::size_t quads, const std::int32_t* tile, const std::int32_t* bias,
                 const float* steps, const float* low, const float* high, std::uint64_t* maybe, std::uint64_t* sure) {
  // Unrolled by hand: an index known only at run time would keep the sums in memory.
  constexpr std::size_t words = Queries * Parts;
  Sums sums[words][vectors];
#pragma GCC unroll 6
  for (std::size_t q = 0; q < words; ++q) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) sums[q][v] = start(bias[q]);
  }
  for (std::size_t k = 0; k < quads; ++k) {
    Codes codes[vectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) codes[v] = load_codes(block.codes + (k * vectors + v) * 4 * lane_count);
#pragma GCC unroll 6
    for (std::size_t q = 0; q < words; ++q) {
      const Word word = load_word(tile[k * words + q]);
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
      Lanes units = to_real(sums[q * Parts][v]);
      if constexpr (Parts > 1) units = fma(units, fill(high_unit), to_real(sums[q * Parts + 1][v]));
      const Lanes score = fma(units * load(block.scales + at), fill(steps[q]), load(block.offsets + at));
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
#if defined(__AVX512F__)
  for (; k + lane_count <= pairs; k += lane_count) {
    bool same = true;
    for (std::size_t i = 1; i < lane_count; ++i) same &= queries[k + i] == queries[k];
    if (!same) break;
    score_points(points + k, offsets + k, queries[k], dimension, scores + k);
  }
#endif
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
  const auto tile = [&]<std::size_t Queries, std::size_t Parts = 1>() {
    screen_tile<Queries, Parts>(block, quads, queries.packed + first * Parts * quads, queries.bias + first * Parts,
                                queries.steps + first, low, high, maybe, sure);
  };
  if (queries.parts > 1) switch (count) {
    case 3: return tile.template operator()<3, 2>();
    case 2: return tile.template operator()<2, 2>();
    default: return tile.template operator()<1, 2>();
  }
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
