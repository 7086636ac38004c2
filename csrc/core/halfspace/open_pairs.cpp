#include "core/halfspace/open_pairs.hpp"

#include "kernels/halfspace.hpp"

namespace fewfire {

void OpenPairs::settle(std::size_t dimension) {
  std::size_t left = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const float above = FEWFIRE_DISPATCH(quick_product, points[k], queries[k], dimension) + offsets[k] - thresholds[k];
    if (above > margins[k]) rows[k]->push_back(slots[k]);
    if (above > margins[k] || above < -margins[k]) continue;
    points[left] = points[k], queries[left] = queries[k], offsets[left] = offsets[k];
    thresholds[left] = thresholds[k], slots[left] = slots[k], rows[left] = rows[k];
    ++left;
  }
  FEWFIRE_DISPATCH(score_pairs, points, offsets, queries, dimension, left, scores);
  for (std::size_t k = 0; k < left; ++k)
    if (scores[k] > thresholds[k]) rows[k]->push_back(slots[k]);
  count = 0;
}

void OpenPairs::settle_scored(std::size_t dimension) {
  FEWFIRE_DISPATCH(score_pairs, points, offsets, queries, dimension, count, scores);
  for (std::size_t k = 0; k < count; ++k)
    if (scores[k] > thresholds[k]) rows[k]->push_back(slots[k]), row_scores[k]->push_back(scores[k]);
  count = 0;
}

}  // namespace fewfire
