#include "core/tree_sieve.hpp"

#include <algorithm>
#include <vector>

namespace fewfire {
namespace {

// Where the forks of each tree begin, and after the last where they end.
std::vector<std::int32_t> starts_of(const FlatTrees& trees, std::size_t forks) {
  std::vector<std::int32_t> starts(trees.trees + 1, static_cast<std::int32_t>(forks));
  for (std::size_t t = trees.trees; t-- > 0;) starts[t] = trees.roots[t] < 0 ? starts[t + 1] : trees.roots[t];
  return starts;
}

// Of one tree: the leaves below each fork (from the last fork up), then which each begins with (from the root down).
void sift(const FlatTrees& trees, std::size_t tree, std::size_t first, std::size_t last, std::uint32_t* kept,
          std::int32_t* leaves) {
  if (first == last) {
    leaves[first + tree] = ~trees.roots[tree];
    return;
  }
  std::vector<std::uint32_t> below(last - first), begin(last - first);
  const auto count = [&](std::int32_t child) { return child < 0 ? 1 : below[static_cast<std::size_t>(child) - first]; };
  for (std::size_t f = last; f-- > first;)
    below[f - first] = count(trees.forks[f].children[0]) + count(trees.forks[f].children[1]);
  for (std::size_t f = first; f < last; ++f) {
    std::uint32_t at = begin[f - first];
    const std::uint32_t of_left = count(trees.forks[f].children[0]);
    kept[f] = ~(((std::uint32_t{1} << of_left) - 1) << at);
    for (const std::int32_t child : trees.forks[f].children) {
      if (child < 0)
        leaves[first + tree + at] = ~child;
      else
        begin[static_cast<std::size_t>(child) - first] = at;
      at += of_left;
    }
  }
}

}  // namespace

void add_trees(const FlatTrees& trees, std::size_t forks, const float* x, std::size_t rows, std::size_t columns,
               double* out, std::size_t outputs) {
  const std::vector<std::int32_t> starts = starts_of(trees, forks);
  std::int32_t most = 0;
  for (std::size_t t = 0; t < trees.trees; ++t) most = std::max(most, starts[t + 1] - starts[t]);
  if (static_cast<std::size_t>(most) >= sieve_leaves) {
    FEWFIRE_DISPATCH(walk_trees, trees, x, rows, columns, out, outputs);
    return;
  }
  std::vector<std::uint32_t> kept(forks);
  std::vector<std::int32_t> leaves(forks + trees.trees);
  for (std::size_t t = 0; t < trees.trees; ++t)
    sift(trees, t, static_cast<std::size_t>(starts[t]), static_cast<std::size_t>(starts[t + 1]), kept.data(), leaves.data());
  std::vector<float> upright(columns * sieve_rows);
  const TreeSieve sieve{starts.data(), kept.data(), leaves.data()};
  FEWFIRE_DISPATCH(sift_trees, trees, sieve, x, rows, columns, out, outputs, upright.data());
}

}  // namespace fewfire
