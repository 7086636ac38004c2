// Gradient boosting of trees on binned columns (Friedman 2001; leaf by leaf, as in LightGBM, Ke et al. 2017).
//
// Every round grows one tree per output along the slopes of the loss. The leaf whose best split gains most is split
// next; every leaf tries its own random part of the columns. Sums over the bins of the larger child are those of the parent
// less those of the smaller. Missing values have the last bin of their column and go where the gain is larger. The twin is
// src/fewfire/tabular/_boosting.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/mlp_training.hpp"
#include "kernels/trees.hpp"

namespace fewfire {

struct BoostingRule {
  std::size_t leaves, least_rows;
  double learning_rate, l2, share;  // of the columns that a leaf tries
  std::uint64_t seed;
};

class Booster {
 public:
  // `bins` of each column, of which the last is that of missing values; target (rows, outputs) and weight (rows,) of
  // all rows of the table; which rows are trained on, and which are held out.
  Booster(BinnedTable table, std::vector<std::size_t> bins, const float* target, std::size_t outputs, const float* weight,
          MlpLoss loss, std::vector<std::int32_t> rows, std::vector<std::int32_t> held, BoostingRule rule);

  // Grows that many rounds more; losses (rounds,): the sum of the weighted losses of the held-out rows after each.
  void advance(std::size_t rounds, double* losses);

  // Of all trees, `outputs` per round: forks (thresholds are numbers of bins), roots, where forks end, the values of the leaves.
  const std::vector<TreeFork>& forks() const { return forks_; }
  const std::vector<std::int32_t>& roots() const { return roots_; }
  const std::vector<std::int32_t>& ends() const { return ends_; }
  const std::vector<float>& values() const { return values_; }
  const std::vector<double>& baseline() const { return baseline_; }

 private:
  struct Split {
    BinSplit at{};
    std::size_t column = 0;
  };
  struct Leaf {
    std::size_t begin, end;  // of its rows in order_
    std::size_t held_begin, held_end;  // of those held out, in held_order_
    BinSums sums;
    std::size_t sums_at;     // its sums over bins, a row of bin_sums_
    std::int32_t fork;       // above it, −1 for the root
    bool right;              // of that fork
    std::uint64_t number;    // in the order leaves come to be
    Split split;
  };

  void differentiate();
  void round_parts(std::size_t output);
  void grow(std::size_t output);
  double rows_of(const BinSums& sums) const;
  double curvature_of(const BinSums& sums) const;
  bool splittable(const Leaf& leaf) const;
  void sum_bins(const Leaf& leaf);
  void find_split(Leaf& leaf);
  void divide(std::size_t number);

  BinnedTable table_;
  std::vector<std::size_t> bins_, offsets_;
  const float *target_, *weight_;
  std::size_t outputs_;
  MlpLoss loss_;
  std::vector<std::int32_t> rows_, held_;
  std::vector<std::int32_t> order_, held_order_;  // the same, leaf by leaf
  std::vector<std::int32_t> beside_;              // a buffer
  BoostingRule rule_;
  std::vector<double> baseline_;
  std::vector<double> said_, held_said_;  // outputs so far (rows of the table, outputs)
  std::vector<double> slopes_, curvatures_;  // (outputs, rows)
  std::vector<BinSums> parts_, chosen_parts_;  // of one output, by rows of the table; those of a leaf
  BinUnits units_{};
  std::vector<std::vector<BinSums>> bin_sums_;
  std::vector<Leaf> leaves_;
  std::vector<TreeFork> forks_;
  std::vector<std::int32_t> roots_, ends_;
  std::vector<float> values_;
};

}  // namespace fewfire
