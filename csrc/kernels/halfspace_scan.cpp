#include "kernels/halfspace_scan.hpp"

#include "kernels/halfspace_lanes.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

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

}  // namespace fewfire::FEWFIRE_ISA
