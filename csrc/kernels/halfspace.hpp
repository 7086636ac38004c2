// The score that decides, and the exact scan of a block of points.
//
//   score(p, b; a) = fl(s_d + b),  s_0 = 0,  s_j = fma(p_j, a_j, s_{j−1})          reported ⇔ score > threshold
//
// in float32, coordinates in order: one rounding per coordinate on every instruction set, so every method, thread count
// and machine reports the same points, ties included. Points stand in blocks of 64, coordinate by coordinate, so that a
// lane is a point and the order above costs nothing. Reference implementation: src/fewfire/halfspace/_reference.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

constexpr std::size_t block_points = 64;
// Queries scored together against a block; a batch is packed in tiles of this many, the last one narrower.
constexpr std::size_t tile_queries = 6;

FEWFIRE_DECLARE(
    // hits[q] = the points of the block (bit i: point i) above thresholds[q], for packed queries.
    void scan_block(const float* points, const float* offsets, std::size_t dimension, const float* packed,
                    const float* thresholds, std::size_t queries, std::uint64_t* hits);
    // The same score for single pairs of rows: scores[k] of points[k] and queries[k].
    void score_pairs(const float* const* points, const float* offsets, const float* const* queries,
                     std::size_t dimension, std::size_t pairs, float* scores);
    // The product of two rows in whatever order is fastest.
    float quick_product(const float* point, const float* query, std::size_t dimension);)

// The screened scan of a block: int8 products first, the exact score only where they cannot decide.
//
// A point p is kept as p̂ = scale·c with integers |c_j| ≤ 127, a query a as â = step·e likewise. Then
//
//   |⟨p, a⟩ − ⟨p̂, â⟩| ≤ ‖p − p̂‖·‖a‖ + ‖p̂‖·‖a − â‖                                        (Cauchy–Schwarz, twice)
//
// Few queries wait for memory, not for products, so each may have two parts, e = 255·h + l with |h_j|, |l_j| ≤ 127: then
// ‖a − â‖ is next to nothing, and about half as many pairs are left open.
//
// With that error and the rounding of both ways of scoring, a pair is *out* when its screened score is not above
// threshold − error, *in* when above threshold + error, and open between. Codes are stored as c + 128 (unsigned, as
// VNNI requires): block by block, four coordinates of 16 points to a vector.

// Coordinates up to which int32 holds every partial sum of products, at most 127·128 each.
constexpr std::size_t most_coded = std::size_t{1} << 17;
// Bytes of a block of codes; coordinates are filled up with zeros to a multiple of four.
inline std::size_t code_quads(std::size_t dimension) { return (dimension + 3) / 4; }
inline std::size_t code_block(std::size_t dimension) { return code_quads(dimension) * 4 * block_points; }
// Where the code of point i, coordinate j of a block stands.
inline std::size_t code_at(std::size_t i, std::size_t j) { return (j / 4) * 4 * block_points + i * 4 + j % 4; }

struct ScreenBlock {
  const std::uint8_t* codes;
  const float *scales, *offsets;  // 64 each
};

// What a unit of the high part of a query's code is worth in units of the low one.
constexpr int high_unit = 255;

struct ScreenQueries {
  std::size_t parts;           // 1, or 2: high and low, for at most fine_queries queries, all in one tile
  const std::int32_t* packed;  // four codes to a word, tiles as in pack_queries, the parts of a query side by side
  const std::int32_t* bias;    // −128·Σ_j e_j of each part
  const float* steps;          // what a unit of e is worth
};
constexpr std::size_t fine_queries = tile_queries / 2;

FEWFIRE_DECLARE(
    // maybe[q], sure[q]: the points whose screened score is above low[q], above high[q].
    void screen_block(const ScreenBlock& block, std::size_t quads, const ScreenQueries& queries, const float* low,
                      const float* high, std::size_t first, std::size_t count, std::uint64_t* maybe,
                      std::uint64_t* sure);)

// Bounds on the scores of whole subtrees, sixteen children of a node at a time.
//
// A child holds points around a centre c, at most R₁ away along the few main axes of the tree and R₂ across them (ball),
// norms of at most N within the angle ω of c (cone), offsets in [b₋, b₊]. With s = ⟨c, a⟩, a₁ and a₂ the parts of a along
// and across the axes, r = R₁‖a₁‖ + R₂‖a₂‖ and cos θ = s/(‖c‖·‖a‖), every score lies in
//
//   [s − r + b₋,  s + r + b₊]   and at most   N‖a‖·max(cos(θ − ω), 0) + b₊ when θ > ω.
//
// Radii and norm are stored with what rounding may add, of the bounds here and of the score itself.

constexpr std::size_t node_children = 16;
// Cones serve centres and queries of at least this norm: below, ⟨c, a⟩ may underflow, which makes cos θ meaningless.
constexpr double least_cone_norm = 1e-18;

struct NodeBounds {
  const float* centres;  // coordinate by coordinate, 16 children each
  const float *along, *across, *low_offset, *high_offset;  // R₁, R₂, b₋, b₊
  const float *cone_norm, *cone_cosine, *cone_sine, *inverse_norm;  // N, cos ω, sin ω, 1/‖c‖
};

struct NodeQuery {
  const float* row;
  float along, across;       // ‖a₁‖, ‖a₂‖
  float norm, inverse_norm;  // ‖a‖ and its inverse, 0 where a cone would not help
  float low, high;           // a child with all scores at most `low` is out, with all above `high` is in
};

FEWFIRE_DECLARE(
    // Bit i of visit: child i may hold a point above; of inside: it holds nothing else (bits of visit that are also set
    // in inside need no visit).
    void bound_children(const NodeBounds& node, std::size_t dimension, const NodeQuery& query, std::uint32_t& visit,
                        std::uint32_t& inside);)

}  // namespace fewfire
