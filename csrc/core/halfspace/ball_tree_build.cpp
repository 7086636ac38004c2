// Building a ball tree: halve the points across the line between two far-apart ones until sixteen parts are left, each
// a child; a full subtree fills its blocks, so all but the last ones of each level are full.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/halfspace/ball_tree.hpp"
#include "core/parallel.hpp"

namespace fewfire {

struct BallTree::Builder {
  BallTree& tree;
  const HalfspacePoints& points;
  std::size_t dimension;
  std::vector<std::uint32_t> order;

  const float* row(std::size_t at) const { return points.rows.data() + std::size_t{order[at]} * dimension; }
  float offset(std::size_t at) const { return points.offsets[order[at]]; }

  // Points a subtree of this height can hold; height 0 is a block.
  static std::size_t capacity(unsigned height) { return block_points << 4 * height; }

  // Squared distance in the space of points and offsets.
  float gap(std::size_t a, std::size_t b) const {
    const float *p = row(a), *q = row(b);
    float sum = (offset(a) - offset(b)) * (offset(a) - offset(b));
    for (std::size_t j = 0; j < dimension; ++j) sum += (p[j] - q[j]) * (p[j] - q[j]);
    return sum;
  }

  std::size_t farthest(std::size_t from, std::size_t first, std::size_t last) const {
    // A sample is enough: any direction of large spread will do.
    const std::size_t step = std::max<std::size_t>((last - first) / 256, 1);
    std::size_t best = first;
    float most = -1;
    for (std::size_t at = first; at < last; at += step)
      if (const float far = gap(from, at); far > most) most = far, best = at;
    return best;
  }

  // Orders [first, last) so that the `left` points lowest along the spread come first.
  void split(std::size_t first, std::size_t last, std::size_t left) {
    const std::size_t one = farthest((first + last) / 2, first, last), other = farthest(one, first, last);
    std::vector<float> direction(dimension + 1);
    for (std::size_t j = 0; j < dimension; ++j) direction[j] = row(other)[j] - row(one)[j];
    direction[dimension] = offset(other) - offset(one);
    std::vector<std::pair<float, std::uint32_t>> keyed(last - first);
    for (std::size_t at = first; at < last; ++at) {
      float key = offset(at) * direction[dimension];
      const float* p = row(at);
      for (std::size_t j = 0; j < dimension; ++j) key += p[j] * direction[j];
      // A key that is no number (of huge coordinates) has no place in an order; any place will do.
      keyed[at - first] = {key == key ? key : 0.0f, order[at]};
    }
    std::nth_element(keyed.begin(), keyed.begin() + static_cast<std::ptrdiff_t>(left), keyed.end());
    for (std::size_t at = first; at < last; ++at) order[at] = keyed[at - first].second;
  }

  // Cuts [first, last) into `parts` ranges, all but the last of `size` points.
  void cut(std::size_t first, std::size_t last, std::size_t parts, std::size_t size, std::size_t threads) {
    if (parts < 2) return;
    const std::size_t left = (parts + 1) / 2 * size;
    split(first, last, left);
    const std::size_t half = std::max<std::size_t>(threads / 2, 1);
    parallel_for(2, std::min<std::size_t>(threads, 2), [&](std::size_t side) {
      if (side == 0)
        cut(first, first + left, (parts + 1) / 2, size, half);
      else
        cut(first + left, last, parts / 2, size, half);
    });
  }

  Extent extent(std::size_t first, std::size_t last) const {
    Extent out;
    out.centre.assign(dimension, 0.0);
    for (std::size_t at = first; at < last; ++at)
      for (std::size_t j = 0; j < dimension; ++j) out.centre[j] += row(at)[j];
    double square = 0;
    for (double& centre : out.centre) {
      centre = static_cast<float>(centre / static_cast<double>(last - first));
      square += centre * centre;
    }
    const double length = std::sqrt(square);
    out.low_offset = out.high_offset = offset(first);
    for (std::size_t at = first; at < last; ++at) {
      const float* p = row(at);
      double gaps = 0, norms = 0, product = 0;
      for (std::size_t j = 0; j < dimension; ++j) {
        const double value = p[j], gap = value - out.centre[j];
        gaps += gap * gap, norms += value * value, product += value * out.centre[j];
      }
      const double norm = std::sqrt(norms);
      out.radius = std::max(out.radius, std::sqrt(gaps));
      out.norm = std::max(out.norm, norm);
      if (norm > 0 && length > 0)
        out.cosine = std::min(out.cosine, product / (norm * length));
      else
        out.cone = false;
      out.low_offset = std::min<double>(out.low_offset, offset(at));
      out.high_offset = std::max<double>(out.high_offset, offset(at));
    }
    return out;
  }

  void fill_block(std::size_t block, std::size_t first, std::size_t last) {
    for (std::size_t at = first; at < last; ++at) {
      const std::size_t slot = block * block_points + (at - first);
      tree.blocks_.write(slot, points.ids[order[at]], row(at), offset(at));
      tree.blocks_.revive(slot);
    }
  }
};

BallTree::BallTree(std::size_t dimension, const HalfspacePoints& points, std::size_t threads)
    : blocks_(dimension), live_(points.ids.size()), built_(live_) {
  Builder builder{*this, points, dimension, std::vector<std::uint32_t>(live_)};
  std::iota(builder.order.begin(), builder.order.end(), 0u);
  unsigned height = 1;
  while (Builder::capacity(height) < live_) ++height;
  const std::size_t blocks = (live_ + block_points - 1) / block_points;
  blocks_.resize(blocks);
  leaf_node_.resize(blocks), leaf_child_.resize(blocks), leaf_radius_.resize(blocks);
  // Nodes level by level: a node's points are a range whose start is a multiple of what its level holds.
  struct Range {
    std::size_t first, last;
    std::uint32_t parent, child;
  };
  std::vector<Range> level{{0, live_, no_node, 0}};
  for (; height > 0; --height) {
    const std::size_t base = nodes_.size(), part = Builder::capacity(height - 1);
    nodes_.resize(base + level.size());
    bounds_.resize(nodes_.size() * (fields + dimension) * node_children);
    std::vector<std::vector<Range>> below(level.size());
    const std::size_t outer = level.size() >= 2 * threads ? threads : 1, inner = outer > 1 ? 1 : threads;
    parallel_for(level.size(), outer, [&](std::size_t n) {
      const Range& range = level[n];
      Node& node = nodes_[base + n];
      node.parent = range.parent, node.parent_child = range.child, node.leaves = height == 1;
      node.children = static_cast<std::uint32_t>((range.last - range.first + part - 1) / part);
      builder.cut(range.first, range.last, node.children, part, inner);
      for (std::uint32_t c = 0; c < node.children; ++c) {
        const std::size_t first = range.first + c * part, last = std::min(first + part, range.last);
        const Extent extent = builder.extent(first, last);
        store(base + n, c, extent);
        node.first[c] = static_cast<std::uint32_t>(first / block_points);
        node.last[c] = static_cast<std::uint32_t>((last + block_points - 1) / block_points);
        below[n].push_back({first, last, static_cast<std::uint32_t>(base + n), c});
        if (height > 1) continue;
        const std::size_t block = node.child[c] = node.first[c];
        leaf_node_[block] = static_cast<std::uint32_t>(base + n), leaf_child_[block] = static_cast<std::uint8_t>(c);
        leaf_radius_[block] = static_cast<float>(extent.radius);
        builder.fill_block(block, first, last);
      }
    });
    std::vector<Range> next;
    for (std::size_t n = 0; n < below.size(); ++n)
      for (Range& range : below[n]) {
        if (height > 1)
          nodes_[base + n].child[range.child] = static_cast<std::uint32_t>(nodes_.size() + next.size());
        next.push_back(range);
      }
    level = std::move(next);
  }
}

}  // namespace fewfire
