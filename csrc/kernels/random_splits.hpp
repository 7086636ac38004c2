// What extra trees spend their time on: a node's rows are divided at a random place of each column that is tried.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

constexpr std::size_t split_lanes = 8;  // rows side by side: arrays by rows of a node end with room for this many

// Rows of a node: their numbers in the table, and whole numbers to be summed over them, `parts` of `stride` each, with
// zeros from `rows` on.
struct NodeRows {
  const std::int32_t* ids;
  std::size_t rows;
  const std::int32_t* numbers;
  std::size_t parts, stride;
};

// Values at most the threshold go left, and missing ones where `missing_left` says. A column whose known values are all
// one, or that has none, is constant and has no threshold.
struct RandomSplit {
  float threshold;
  bool constant, missing_left;
  std::size_t missing;  // rows
};

FEWFIRE_DECLARE(
    // For each of `count` columns of a table (columns, table_rows): a threshold uniform between the least and the largest
    // known value, and by the last bit of the draw the way of missing values. sums (count, 2, 1 + parts): how many rows go
    // left and their sums; then, where rows are missing, the same of those that are not. `values` is a buffer for a node.
    void try_columns(const float* table, std::size_t table_rows, const NodeRows& node, const std::int32_t* columns,
                     const std::uint64_t* draws, std::size_t count, float* values, RandomSplit* splits,
                     std::int64_t* sums);)

}  // namespace fewfire
