// The score that decides, and the exact scan of a block of points.
//
//   score(p, b; a) = fl(s_d + b),  s_0 = 0,  s_j = fma(p_j, a_j, s_{j−1})          reported ⇔ score > threshold
//
// in float32, coordinates in order: one rounding a coordinate on every instruction set, so every method, thread count and
// machine reports the same points, ties included. Points stand in blocks of 64, coordinate by coordinate, so that a lane
// is a point and the order above costs nothing. src/fewfire/halfspace/_reference.py is the twin.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu.hpp"

namespace fewfire {

constexpr std::size_t block_points = 64;
// Queries scored together against a block; a batch is packed in tiles of this many, the last one narrower.
constexpr std::size_t tile_queries = 6;

// Places query q, coordinate j of a batch at the tile's start + j·(queries of the tile) + (q − first query).
inline void pack_queries(const float* queries, std::size_t count, std::size_t dimension, float* packed) {
  for (std::size_t first = 0; first < count; first += tile_queries) {
    const std::size_t here = count - first < tile_queries ? count - first : tile_queries;
    for (std::size_t q = 0; q < here; ++q)
      for (std::size_t j = 0; j < dimension; ++j)
        packed[first * dimension + j * here + q] = queries[(first + q) * dimension + j];
  }
}

FEWFIRE_DECLARE(
    // hits[q] = the points of the block (bit i: point i) above thresholds[q], for packed queries.
    void scan_block(const float* points, const float* offsets, std::size_t dimension, const float* packed,
                    const float* thresholds, std::size_t queries, std::uint64_t* hits);
    // The same score for single pairs of rows: scores[k] of points[k] and queries[k].
    void score_pairs(const float* const* points, const float* offsets, const float* const* queries,
                     std::size_t dimension, std::size_t pairs, float* scores);
    // The product of two rows in whatever order is fastest.
    float quick_product(const float* point, const float* query, std::size_t dimension);)

}  // namespace fewfire
