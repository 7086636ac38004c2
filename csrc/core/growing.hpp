// What trees of all kinds are grown with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fewfire {

// A number that depends on all bits of another (the finaliser of SplitMix64): what trees draw by.
inline std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Moves the rows of order[begin…end) that go left before the others, each side in its order; where the others begin.
// `beside` has room for as many rows.
template <class GoesLeft>
std::size_t divided(std::vector<std::int32_t>& order, std::size_t begin, std::size_t end, std::int32_t* beside,
                    const GoesLeft& goes_left) {
  std::int32_t* rows = order.data();
  std::size_t middle = begin, others = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const std::int32_t row = rows[i];
    const bool left = goes_left(row);
    rows[middle] = row;
    beside[others] = row;
    middle += left;
    others += !left;
  }
  std::copy_n(beside, others, rows + middle);
  return middle;
}

}  // namespace fewfire
