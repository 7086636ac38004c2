#include "core/halfspace/collector.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/parallel.hpp"

namespace fewfire {

void sort_ids(std::int64_t* ids, std::size_t count, std::vector<std::int64_t>& scratch) {
  if (std::is_sorted(ids, ids + count)) return;
  const auto [least, largest] = std::minmax_element(ids, ids + count);
  const std::int64_t base = *least;
  const auto span = static_cast<std::uint64_t>(*largest - base);
  constexpr unsigned digit = 11;
  const unsigned passes = (static_cast<unsigned>(std::bit_width(span)) + digit - 1) / digit;
  if (count < 256 * passes) return std::sort(ids, ids + count);
  scratch.resize(count);
  std::int64_t *from = ids, *to = scratch.data();
  for (unsigned pass = 0; pass < passes; ++pass) {
    std::array<std::uint32_t, 1u << digit> starts{};
    const auto key = [&](std::int64_t id) {
      return static_cast<std::size_t>(static_cast<std::uint64_t>(id - base) >> pass * digit) & (starts.size() - 1);
    };
    for (std::size_t i = 0; i < count; ++i) ++starts[key(from[i])];
    std::uint32_t sum = 0;
    for (std::uint32_t& start : starts) sum += std::exchange(start, sum);
    for (std::size_t i = 0; i < count; ++i) to[starts[key(from[i])]++] = from[i];
    std::swap(from, to);
  }
  if (from != ids) std::copy(from, from + count, ids);
}

void Collector::sort_scored(std::int64_t* ids, float* scores, std::size_t count) {
  if (std::is_sorted(ids, ids + count)) return;
  std::vector<std::pair<std::int64_t, float>> pairs(count);
  for (std::size_t i = 0; i < count; ++i) pairs[i] = {ids[i], scores[i]};
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < count; ++i) ids[i] = pairs[i].first, scores[i] = pairs[i].second;
}

HalfspaceReport Collector::finish(std::size_t threads) {
  HalfspaceReport report;
  const std::size_t pieces = queries_ ? rows_.size() / queries_ : 0;
  report.starts.assign(queries_ + 1, 0);
  for (std::size_t q = 0; q < queries_; ++q) {
    std::size_t total = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) total += row(piece, q).size();
    report.starts[q + 1] = report.starts[q] + static_cast<std::int64_t>(total);
  }
  report.ids.resize(static_cast<std::size_t>(report.starts[queries_]));
  if (!scores_.empty()) report.scores.resize(report.ids.size());
  const std::size_t groups = std::min<std::size_t>(queries_, report.ids.size() > 50000 ? 4 * threads : 1);
  interruptible_for(groups, threads, [&](std::size_t group) {
    std::vector<std::int64_t> scratch;
    for (std::size_t q = group * queries_ / groups; q < (group + 1) * queries_ / groups; ++q) {
      interruption_point();
      std::int64_t* to = report.ids.data() + report.starts[q];
      std::int64_t* at = to;
      for (std::size_t piece = 0; piece < pieces; ++piece) at = std::copy(row(piece, q).begin(), row(piece, q).end(), at);
      const auto count = static_cast<std::size_t>(at - to);
      if (scores_.empty()) {
        sort_ids(to, count, scratch);
        continue;
      }
      float* const scores_to = report.scores.data() + report.starts[q];
      float* scores_at = scores_to;
      for (std::size_t piece = 0; piece < pieces; ++piece)
        scores_at = std::copy(scores(piece, q).begin(), scores(piece, q).end(), scores_at);
      sort_scored(to, scores_to, count);
    }
  });
  return report;
}

}  // namespace fewfire
