// Queries of the trees, parallel over queries; see kernels/halfspace_nodes.hpp for the bounds.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/halfspace/tree_index.hpp"
#include "core/parallel.hpp"

namespace fewfire {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

NodeQuery prepare(const float* row, float threshold, std::size_t dimension, double norm) {
  const float least = 8.0f * static_cast<float>(dimension + 8) * 0x1p-149f;  // what sums lose below the normal range
  const bool cones = norm > least_cone_norm && norm < 1e30;
  return {row, 0.0f, 0.0f, std::nextafter(static_cast<float>(norm), infinity), cones ? static_cast<float>(1 / norm) : 0.0f,
          std::nextafter(threshold - least, -infinity), std::nextafter(threshold + least, infinity)};
}

}  // namespace

void TreeIndex::search_one(const HalfspaceQueries& queries, std::size_t query, std::vector<std::int64_t>& row,
                           HalfspaceCounters& counters) const {
  const float* direction = queries.rows + query * dimension_;
  double square = 0;
  for (std::size_t j = 0; j < dimension_; ++j) square += static_cast<double>(direction[j]) * direction[j];
  const double norm = std::sqrt(square);
  const NodeQuery prepared = prepare(direction, queries.thresholds[query], dimension_, norm);
  // Beyond this, partial sums may overflow and the bounds say nothing: look at every block.
  const bool bounded = 4 * norm * largest_norm_ + largest_offset_ < 1e38;
  std::vector<std::uint32_t> stack, leaves;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  for (const auto& tree : trees_) {
    if (!tree) continue;
    const PointBlocks& blocks = tree->blocks();
    leaves.clear(), ranges.clear();
    if (bounded)
      tree->search(prepared, stack, leaves, ranges, counters);
    else
      for (std::size_t block = 0; block < blocks.blocks(); ++block) leaves.push_back(static_cast<std::uint32_t>(block));
    const std::size_t lines = std::min<std::size_t>(blocks.block_bytes() / 64, 32);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (i + 2 < leaves.size())
        for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(blocks.points(leaves[i + 2]) + 16 * line);
      std::uint64_t hits;
      FEWFIRE_DISPATCH(scan_block, blocks.points(leaves[i]), blocks.offsets(leaves[i]), dimension_, direction,
                       queries.thresholds + query, 1, &hits);
      Collector::append(row, blocks.ids(leaves[i]), hits & blocks.live(leaves[i]));
    }
    for (const auto& [first, last] : ranges)
      for (std::uint32_t block = first; block < last; ++block)
        Collector::append(row, blocks.ids(block), blocks.live(block));
    counters.points += leaves.size() * block_points;
    counters.bytes += leaves.size() * blocks.block_bytes();
  }
}

HalfspaceReport TreeIndex::query(const HalfspaceQueries& queries, std::size_t threads,
                                 HalfspaceCounters& counters) const {
  // Many small pieces: queries differ a lot in what they cost.
  const std::size_t pieces = std::min<std::size_t>(queries.count, 16 * threads);
  Collector collector(1, queries.count);
  std::vector<HalfspaceCounters> spent(pieces);
  parallel_for(pieces, size() < 4 * tail_limit ? 1 : threads, [&](std::size_t piece) {
    const std::size_t first = piece * queries.count / pieces, last = (piece + 1) * queries.count / pieces;
    for (std::size_t q = first; q < last; ++q) search_one(queries, q, collector.row(0, q), spent[piece]);
  });
  for (const HalfspaceCounters& part : spent) counters.add(part);
  std::vector<float> packed(queries.count * dimension_);
  pack_queries(queries.rows, queries.count, dimension_, packed.data());
  scan_range(tail_.blocks(), 0, tail_.blocks().blocks(), packed.data(), queries, collector, 0, counters);
  return collector.finish(threads);
}

}  // namespace fewfire
