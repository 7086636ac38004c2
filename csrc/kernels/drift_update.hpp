// The change of a neuron's weights from the examples it fired on.
#pragma once

#include "kernels/drift_refresh.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Puts the ids in ascending order: sums over them then do not depend on the order of the list. A few are sent straight
// to their ranks, many go through a set of bits.
void sort_ids(std::uint32_t* ids, std::size_t count, std::vector<std::uint64_t>& bits) {
  if (count <= lanes) {
    alignas(64) std::uint32_t all[lanes];
    for (std::size_t k = 0; k < lanes; ++k) all[k] = k < count ? ids[k] : 0xffffffffu;
    for (std::size_t k = 0; k < count; ++k) ids[count_below(all, all[k])] = all[k];
    return;
  }
  std::size_t low = bits.size(), high = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t word = ids[k] / 64;
    bits[word] |= std::uint64_t{1} << ids[k] % 64;
    low = std::min(low, word);
    high = std::max(high, word);
  }
  for (std::size_t word = low; word <= high; ++word) {
    for (std::uint64_t left = bits[word]; left != 0; left &= left - 1)
      *ids++ = static_cast<std::uint32_t>(64 * word + static_cast<std::size_t>(__builtin_ctzll(left)));
    bits[word] = 0;
  }
}

// w += factor·Σ_k slope_k x_k for `vectors`·16 coordinates; returns the squares of the change by lane.
template <std::size_t vectors>
Floats descend(float* w, const float* rows, std::size_t stride, const std::uint32_t* ids, const float* slopes,
               std::size_t count, float factor) {
  Floats sums[vectors] = {}, squares{};
  for (std::size_t k = 0; k < count; ++k) {
    const float* x = rows + ids[k] * stride;
    const Floats slope = spread(slopes[ids[k]]);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) sums[v] += slope * load(x + v * lanes);
  }
#pragma GCC unroll 4
  for (std::size_t v = 0; v < vectors; ++v) {
    const Floats before = load(w + v * lanes), after = before + spread(factor) * sums[v], change = after - before;
    store(w + v * lanes, after);
    squares += change * change;
  }
  return squares;
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
