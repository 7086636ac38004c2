// Extremely randomised trees (Geurts, Ernst and Wehenkel 2006), by the rule of scikit-learn's ExtraTrees.
//
// A node tries a random part of the columns, each divided at a random place between its least and its largest value, and
// takes the division that leaves the least squared error; with chances of classes for targets that is Gini's impurity.
// Missing values go left or right by a draw, or by themselves. Targets are whole numbers: their sums are exact, the same
// on every processor and in the twin, src/fewfire/tabular/_extra_trees.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/random_splits.hpp"
#include "kernels/trees.hpp"

namespace fewfire {

// A table (columns, rows) with NaN; numbers (parts, rows), of which the first are weights if `weighted`, the others
// targets times weights; target (rows, outputs) tells which rows are alike.
struct ExtraTreesTable {
  const float* values;
  std::size_t rows, columns;
  const std::int32_t* numbers;
  std::size_t parts;
  bool weighted;
  const float* target;
  std::size_t outputs;
};

class ExtraTrees {
 public:
  // Every leaf has `least_rows`; every node tries `tried` of the columns, or more until one is not constant.
  ExtraTrees(ExtraTreesTable table, std::vector<std::int32_t> rows, std::size_t least_rows, std::size_t tried);

  // Grows one more tree, breadth first.
  void grow(std::uint64_t seed);

  // Of all trees: forks, roots, and of every leaf how many rows it has and their sums, (leaves, 1 + parts).
  const std::vector<TreeFork>& forks() const { return forks_; }
  const std::vector<std::int32_t>& roots() const { return roots_; }
  const std::vector<std::int64_t>& sums() const { return leaf_sums_; }

 private:
  struct Node {
    std::size_t begin, end;  // of its rows in order_
    std::int32_t fork;       // above it, −1 for the root
    bool right;              // of that fork
  };
  struct Choice {
    double score;
    std::int32_t column;  // −1: none
    float threshold;
    bool missing_left;
  };

  bool alike(const Node& node) const;
  void gather(const Node& node);
  Choice choose(std::size_t number);
  void try_listed(const Node& node, std::size_t number, Choice& best);
  double score(const std::int64_t* left, const std::int64_t* all) const;
  void divide(std::size_t number, const Choice& choice);

  ExtraTreesTable table_;
  std::vector<std::int32_t> rows_, order_, beside_, numbers_;
  std::vector<float> values_;
  std::size_t least_rows_, tried_, words_;  // of 64 columns
  std::uint64_t seed_ = 0;
  std::vector<Node> nodes_;              // of the tree that grows
  std::vector<std::int64_t> node_sums_;  // (nodes, 1 + parts)
  std::vector<std::uint64_t> constant_;  // (nodes, words_): columns that were seen to be constant
  std::vector<std::uint64_t> keys_, sorted_, draws_;
  std::vector<std::int32_t> listed_;
  std::vector<RandomSplit> splits_;
  std::vector<std::int64_t> split_sums_, left_sums_;
  std::vector<TreeFork> forks_;
  std::vector<std::int32_t> roots_;
  std::vector<std::int64_t> leaf_sums_;
};

}  // namespace fewfire
