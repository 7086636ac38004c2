// Subsets of {0 … n − 1} of one size in lexicographic order.
//
// Everything here has internal linkage: a kernel file compiled for AVX-512 must not lend its copy to the baseline.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fewfire {
namespace {

// Larger subsets come in numbers no array holds, unless n is smaller still.
constexpr std::size_t largest_subset = 64;

struct Subset {
  std::size_t size;
  std::size_t members[largest_subset];
};

[[maybe_unused]] std::uint64_t binomial(std::uint64_t n, std::uint64_t k) {
  if (k > n) return 0;
  std::uint64_t value = 1;
  for (std::uint64_t i = 1; i <= k; ++i) value = value / i * (n - k + i) + value % i * (n - k + i) / i;
  return value;
}

// The subset of the given rank.
[[maybe_unused]] Subset subset_of_rank(std::size_t n, std::size_t size, std::uint64_t rank) {
  Subset subset{size, {}};
  std::size_t member = 0;
  for (std::size_t position = 0; position < size; ++position, ++member) {
    for (std::uint64_t block; rank >= (block = binomial(n - member - 1, size - position - 1)); ++member) rank -= block;
    subset.members[position] = member;
  }
  return subset;
}

// Moves to the next subset; returns the lowest position that changed, or the size after the last one.
[[maybe_unused]] std::size_t next_subset(Subset& subset, std::size_t n) {
  for (std::size_t position = subset.size; position-- > 0;)
    if (subset.members[position] < n - subset.size + position) {
      ++subset.members[position];
      for (std::size_t later = position + 1; later < subset.size; ++later)
        subset.members[later] = subset.members[later - 1] + 1;
      return position;
    }
  return subset.size;
}

}  // namespace
}  // namespace fewfire
