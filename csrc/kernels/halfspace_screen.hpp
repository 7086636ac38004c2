// The screened scan of a block: int8 products first, the exact score only where they cannot decide.
//
// A point p is kept as p̂ = scale·c with integers |c_j| ≤ 127, a query a as â = step·e likewise. Then
//
//   |⟨p, a⟩ − ⟨p̂, â⟩| ≤ ‖p − p̂‖·‖a‖ + ‖p̂‖·‖a − â‖                                        (Cauchy–Schwarz, twice)
//
// With that error and the rounding of both ways of scoring, a pair is *out* when its screened score is not above
// threshold − error, *in* when above threshold + error, and open between. Codes are stored as c + 128 (unsigned, as
// VNNI wants it): block by block, four coordinates of 16 points to a vector.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu.hpp"
#include "kernels/halfspace_scan.hpp"

namespace fewfire {

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

struct ScreenQueries {
  const std::int32_t* packed;  // four codes to a word, tiles as in pack_queries
  const std::int32_t* bias;    // −128·Σ_j e_j
  const float* steps;
};

FEWFIRE_DECLARE(
    // maybe[q], sure[q]: the points whose screened score is above low[q], above high[q].
    void screen_block(const ScreenBlock& block, std::size_t quads, const ScreenQueries& queries, const float* low,
                      const float* high, std::size_t first, std::size_t count, std::uint64_t* maybe,
                      std::uint64_t* sure);)

}  // namespace fewfire
