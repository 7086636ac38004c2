// What trees spend their time on: sums over bins when they are grown, and walks from root to leaf when they predict.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

// Of one row, or of the rows of a bin: the slopes of the loss, and its curvatures with how many rows they are in the lower
// `shift` bits of one number. Slopes and curvatures are whole numbers of a unit: sums are exact, in any order.
struct BinSums {
  std::int64_t slope, curvature_and_rows;
};

// What whole numbers stand for.
struct BinUnits {
  double slope, curvature;
  int shift;
};

// A table in bins, column after column: `bins` (columns, rows).
struct BinnedTable {
  const std::uint8_t* bins;
  std::size_t rows, columns;
};

// A fork of a tree: whether x[column] is at most the threshold, or missing, says where to go. Children below 0 are
// leaves: ~child is their number.
struct TreeFork {
  std::int32_t column;  // twice its number, and 1 more where missing values go left
  float threshold;
  std::int32_t children[2];  // left, right
};

// Trees one after another: forks of all of them, where each begins, and the numbers that leaves (leaves, width) add to the
// outputs from number `first` of the tree on.
struct FlatTrees {
  const TreeFork* forks;
  const std::int32_t *roots, *first;
  std::size_t trees;
  const float* values;
  std::size_t width;
};

constexpr std::size_t sieve_leaves = 32, sieve_rows = 64;

// Small trees as sets of leaves (QuickScorer, Lucchese et al. 2015): all forks of a tree are asked, and each whose answer
// is "right" strikes out the leaves to its left; the first leaf that is left is the row's. No step waits for another.
struct TreeSieve {
  const std::int32_t* starts;   // (trees + 1,): where the forks of each tree begin
  const std::uint32_t* kept;    // (forks,): leaves that "right" leaves over
  const std::int32_t* leaves;   // (forks + trees,): numbers of the leaves from left to right
};

constexpr std::size_t split_room = 8;  // more bins than 256 that buffers have

// What a split has to keep to: rows and curvature of either side, at least, and what is added to curvatures.
struct BinRule {
  std::int64_t least_rows;
  double least_curvature, l2;
};

// Bins up to `bin` go left, and missing values (those of the last bin) if `missing_left`; `left` are the sums there.
struct BinSplit {
  double gain;
  std::size_t bin;
  bool missing_left;
  BinSums left;
};

FEWFIRE_DECLARE(
    // sums[offsets[c] + bin] += parts[i] for the rows i, of numbers `ids` in the table, and every column c.
    void add_to_bins(const BinnedTable& table, const std::int32_t* ids, const BinSums* parts, std::size_t rows,
                     const std::size_t* offsets, BinSums* sums);
    // Whether some split of a column, sums (bins,), gains more than `best`, which becomes the best of them; `all` are the
    // sums over all bins. The gain is (Σ left slopes)² / (Σ left curvatures + l2) + the same of the right − that of both.
    bool better_split(const BinSums* sums, std::size_t bins, const BinSums& all, const BinUnits& units,
                      const BinRule& rule, BinSplit& best);
    // out (rows, outputs) += what the trees say of x (rows, columns); NaN is a missing value.
    void walk_trees(const FlatTrees& trees, const float* x, std::size_t rows, std::size_t columns, double* out,
                    std::size_t outputs);
    // The same for trees of at most `sieve_leaves` leaves each; `upright` holds (columns, sieve_rows) floats.
    void sift_trees(const FlatTrees& trees, const TreeSieve& sieve, const float* x, std::size_t rows,
                    std::size_t columns, double* out, std::size_t outputs, float* upright);)

}  // namespace fewfire
