// A static tree of balls and cones over blocks of 64 points, sixteen children per node; points may be cleared, and moved
// a little within their block, in which case the balls on the way up grow.
//
// Blocks are numbered in the order of the leaves, so a subtree is a range of blocks. The axes are the few directions in
// which points stray from the centre of their block, where there are such: on data of low intrinsic dimension a query is
// nearly orthogonal to them, and bounding along and across apart keeps the bound from counting the rest of it.
#pragma once

#include <cstddef>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/aligned.hpp"
#include "core/halfspace/blocks.hpp"
#include "core/halfspace/collector.hpp"
#include "core/halfspace/index.hpp"
#include "kernels/halfspace.hpp"

namespace fewfire {

class BallTree {
 public:
  BallTree(std::size_t dimension, const HalfspacePoints& points, std::size_t threads);

  const PointBlocks& blocks() const { return blocks_; }
  std::size_t live() const { return live_; }
  std::size_t built() const { return built_; }  // points at the time of building
  std::size_t memory() const;

  void clear(std::size_t slot) { blocks_.clear(slot), --live_; }
  // Replaces a point where its block's ball, at most half as large again as it was built, can hold the new one; else
  // leaves everything as it is and returns false. Allocates nothing: `gaps` is scratch for one number per dimension.
  bool move(std::size_t slot, const float* row, float offset, double* gaps);
  // Takes `clear` or `move` of a point back; the balls stay as large as they have become.
  void restore(std::size_t slot, const float* row, float offset) {
    if (!blocks_.is_live(slot)) blocks_.revive(slot), ++live_;
    blocks_.write(slot, blocks_.id(slot), row, offset);
  }

  // Appends blocks that have to be scanned to `leaves`, and ranges of blocks all of whose points are above to `ranges`.
  // `query` comes without its parts along and across the axes, which each tree has for itself.
  void search(NodeQuery query, std::vector<std::uint32_t>& stack, std::vector<std::uint32_t>& leaves,
              std::vector<std::pair<std::uint32_t, std::uint32_t>>& ranges, HalfspaceCounters& counters) const;

 private:
  // Points that a child holds, as its bounds are computed.
  struct Extent {
    std::vector<double> centre;
    double along = 0, across = 0, norm = 0, cosine = 1, low_offset = 0, high_offset = 0;
    bool cone = true;
  };
  struct Node {
    std::uint32_t children = 0, parent = 0, parent_child = 0;
    bool leaves = false;                                      // its children are blocks
    std::uint32_t child[node_children], first[node_children], last[node_children];
  };
  static constexpr std::size_t fields = 8, most_axes = 8;
  static constexpr std::uint32_t no_node = 0xffffffff;

  struct Builder;
  float* field(std::size_t node, std::size_t which) {
    return bounds_.data() + (node * (fields + blocks_.dimension()) + which) * node_children;
  }
  const float* field(std::size_t node, std::size_t which) const {
    return bounds_.data() + (node * (fields + blocks_.dimension()) + which) * node_children;
  }
  NodeBounds bounds(std::size_t node) const;
  void store(std::size_t node, std::size_t child, const Extent& extent);
  double rounding() const;
  // Norms of the parts of a vector along and across the axes, the latter rounded up.
  template <class T>
  std::pair<double, double> parts(const T* vector) const;
  void find_axes(const HalfspacePoints& points);  // in the order of the blocks

  PointBlocks blocks_;
  std::size_t live_, built_;
  std::vector<double> axes_;  // orthonormal rows
  std::vector<Node> nodes_;
  AlignedVector<float> bounds_;  // a node's fields, then its centres
  std::vector<std::uint32_t> leaf_node_;
  std::vector<std::uint8_t> leaf_child_;
  std::vector<float> leaf_radius_;  // as built
};

template <class T>
std::pair<double, double> BallTree::parts(const T* vector) const {
  const std::size_t dimension = blocks_.dimension();
  double all = 0, along = 0;
  for (std::size_t j = 0; j < dimension; ++j) all += static_cast<double>(vector[j]) * vector[j];
  for (const double* axis = axes_.data(); axis < axes_.data() + axes_.size(); axis += dimension) {
    double product = 0;
    for (std::size_t j = 0; j < dimension; ++j) product += vector[j] * axis[j];
    along += product * product;
  }
  // The difference of the two sums is right to their rounding, which is added.
  const double across = axes_.empty() ? all : std::max(all - along, 0.0) + static_cast<double>(dimension) * 0x1p-50 * all;
  return {std::sqrt(along), std::sqrt(across)};
}

}  // namespace fewfire
