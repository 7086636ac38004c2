#include "core/halfspace/index.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "kernels/halfspace.hpp"

namespace fewfire {

void HalfspaceCounters::add(const HalfspaceCounters& other) {
  queries += other.queries, reported += other.reported, points += other.points;
  rechecks += other.rechecks, nodes += other.nodes, bytes += other.bytes;
}

HalfspaceReport HalfspaceIndex::query_scores(const HalfspaceQueries& queries, std::size_t threads,
                                             HalfspaceCounters& counters) const {
  HalfspaceReport report = query(queries, threads, counters);
  constexpr std::size_t together = 16;
  const std::size_t total = report.ids.size(), dimension = queries.dimension;
  report.scores.resize(total);
  const std::size_t pieces = total * dimension < (std::size_t{1} << 17) ? 1 : 4 * threads;
  interruptible_for(pieces, threads, [&](std::size_t piece) {
    std::vector<float> scratch(together * dimension);
    const float *points[together], *rows[together];
    float offsets[together];
    const std::size_t last = (piece + 1) * total / pieces;
    std::size_t at = piece * total / pieces;
    // The query whose ids `at` is among.
    auto query = static_cast<std::size_t>(
        std::upper_bound(report.starts.begin(), report.starts.end(), static_cast<std::int64_t>(at)) -
        report.starts.begin()) - 1;
    while (at < last) {
      if (at % (64 * together) < together) interruption_point();
      const std::size_t here = std::min(together, last - at);
      for (std::size_t k = 0; k < here; ++k) {
        while (static_cast<std::size_t>(report.starts[query + 1]) <= at + k) ++query;
        points[k] = point(report.ids[at + k], scratch.data() + k * dimension, offsets[k]);
        for (std::size_t j = 0; j < dimension; j += 16) __builtin_prefetch(points[k] + j);
        rows[k] = queries.rows + query * dimension;
      }
      FEWFIRE_DISPATCH(score_pairs, points, offsets, rows, dimension, here, report.scores.data() + at);
      at += here;
    }
  });
  return report;
}

std::unique_ptr<HalfspaceIndex> make_halfspace_index(const std::string& method, std::size_t dimension) {
  if (method == "scan") return make_scan_index(dimension);
  if (method == "screen") return make_screen_index(dimension);
  if (method == "tree") return make_tree_index(dimension);
  if (method == "layers" && dimension == 2) return make_layers_index();
  return nullptr;
}

}  // namespace fewfire
