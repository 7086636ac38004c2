// Gathers the ids that the pieces of a query batch report, and makes ascending rows of them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/halfspace/index.hpp"

namespace fewfire {

// Sorts ids in ascending order; a counting sort digit by digit where that is faster.
void sort_ids(std::int64_t* ids, std::size_t count, std::vector<std::int64_t>& scratch);

// Blocks between two interruption points, each of which costs as much as scanning some points.
inline std::size_t blocks_between_points(std::size_t queries) { return 1 + 4096 / (queries + 1); }

class Collector {
 public:
  // Each piece of the work has rows of its own for the queries [first, last) that it serves.
  Collector(std::size_t pieces, std::size_t queries, bool scored = false)
      : queries_(queries), rows_(pieces * queries), scores_(scored ? pieces * queries : 0) {}

  std::vector<std::int64_t>& row(std::size_t piece, std::size_t query) { return rows_[piece * queries_ + query]; }
  // The scores of the row's ids, where the report is to have scores.
  std::vector<float>& scores(std::size_t piece, std::size_t query) { return scores_[piece * queries_ + query]; }

  // Appends the ids of the slots whose bit is set. Flattened: this is the inner loop of queries that report much, and a
  // call per id would show.
  [[gnu::flatten]] static void append(std::vector<std::int64_t>& row, const std::int64_t* ids, std::uint64_t mask) {
    for (; mask; mask &= mask - 1) row.push_back(ids[std::countr_zero(mask)]);
  }
  // The same with slots from `first` on in place of ids, to be named later all at once: a scan that waits for the id of
  // every point it reports waits for memory each time.
  [[gnu::flatten]] static void append_slots(std::vector<std::int64_t>& row, std::size_t first, std::uint64_t mask) {
    for (; mask; mask &= mask - 1) row.push_back(static_cast<std::int64_t>(first) + std::countr_zero(mask));
  }
  void name_slots(std::size_t piece, const std::int64_t* ids) {
    for (std::size_t q = 0; q < queries_; ++q)
      for (std::int64_t& entry : row(piece, q)) entry = ids[entry];
  }

  HalfspaceReport finish(std::size_t threads);

 private:
  // Brings ids, and their scores with them, into order.
  static void sort_scored(std::int64_t* ids, float* scores, std::size_t count);

  std::size_t queries_;
  std::vector<std::vector<std::int64_t>> rows_;
  std::vector<std::vector<float>> scores_;
};

}  // namespace fewfire
