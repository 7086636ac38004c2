// Pairs of a point and a query that codes did not decide, settled some at a time, when the memory asked for is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fewfire {

struct OpenPairs {
  static constexpr std::size_t capacity = 256;
  const float* points[capacity];
  const float* queries[capacity];
  float offsets[capacity], thresholds[capacity], margins[capacity], scores[capacity];
  std::int64_t slots[capacity];
  std::vector<std::int64_t>* rows[capacity];  // where the slots of points above go
  std::vector<float>* row_scores[capacity];   // and their scores, where those are asked for
  std::size_t count = 0;

  // By a float32 product in any order where the rounding of that and of the score, `margin`, cannot change the answer,
  // and by the score itself otherwise.
  void settle(std::size_t dimension);
  // By the scores alone, which are kept.
  void settle_scored(std::size_t dimension);
};

}  // namespace fewfire
