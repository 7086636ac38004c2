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
  HalfspacePoints points;
  std::size_t dimension;
  std::vector<std::uint32_t> order;  // of the points, while a level is cut

  // Brings the points into `order`, so that a level reads its part of them and not memory at large.
  void arrange(std::size_t threads) {
    HalfspacePoints next;
    next.ids.resize(order.size()), next.offsets.resize(order.size()), next.rows.resize(order.size() * dimension);
    const std::size_t pieces = 4 * threads;
    parallel_for(pieces, threads, [&](std::size_t piece) {
      for (std::size_t at = piece * order.size() / pieces; at < (piece + 1) * order.size() / pieces; ++at) {
        next.ids[at] = points.ids[order[at]], next.offsets[at] = points.offsets[order[at]];
        std::copy(row(at), row(at) + dimension, next.rows.data() + at * dimension);
        order[at] = static_cast<std::uint32_t>(at);
      }
    });
    points = std::move(next);
  }

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
    std::vector<double> gaps(dimension);
    out.low_offset = out.high_offset = offset(first);
    for (std::size_t at = first; at < last; ++at) {
      const float* p = row(at);
      double norms = 0, product = 0;
      for (std::size_t j = 0; j < dimension; ++j) {
        const double value = p[j];
        gaps[j] = value - out.centre[j];
        norms += value * value, product += value * out.centre[j];
      }
      const auto [along, across] = tree.parts(gaps.data());
      const double norm = std::sqrt(norms);
      out.along = std::max(out.along, along), out.across = std::max(out.across, across);
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
      tree.blocks_.write(slot, points.ids[at], row(at), offset(at));
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
  std::vector<Range> level{{0, live_, no_node, 0}}, ranges;
  for (; height > 0; --height) {
    const std::size_t part = Builder::capacity(height - 1), next = nodes_.size() + level.size();
    const std::size_t outer = level.size() >= 2 * threads ? threads : 1, inner = outer > 1 ? 1 : threads;
    parallel_for(level.size(), outer, [&](std::size_t n) {
      builder.cut(level[n].first, level[n].last, (level[n].last - level[n].first + part - 1) / part, part, inner);
    });
    builder.arrange(threads);
    std::vector<Range> below;
    for (const Range& range : level) {
      Node node;
      node.parent = range.parent, node.parent_child = range.child, node.leaves = height == 1;
      const auto number = static_cast<std::uint32_t>(nodes_.size());
      for (std::size_t first = range.first; first < range.last; first += part) {
        const std::size_t last = std::min(first + part, range.last);
        const std::uint32_t c = node.children++;
        node.first[c] = static_cast<std::uint32_t>(first / block_points);
        node.last[c] = static_cast<std::uint32_t>((last + block_points - 1) / block_points);
        node.child[c] = node.leaves ? node.first[c] : static_cast<std::uint32_t>(next + below.size());
        below.push_back({first, last, number, c});
      }
      nodes_.push_back(node);
    }
    ranges.insert(ranges.end(), below.begin(), below.end());
    level = std::move(below);
  }
  find_axes(builder.points);
  bounds_.resize(nodes_.size() * (fields + dimension) * node_children);
  parallel_for(ranges.size(), threads, [&](std::size_t n) {
    const Range& range = ranges[n];
    const Extent extent = builder.extent(range.first, range.last);
    store(range.parent, range.child, extent);
    if (!nodes_[range.parent].leaves) return;
    const std::size_t block = range.first / block_points;
    leaf_node_[block] = range.parent, leaf_child_[block] = static_cast<std::uint8_t>(range.child);
    leaf_radius_[block] = static_cast<float>(std::hypot(extent.along, extent.across));
    builder.fill_block(block, range.first, range.last);
  });
}

}  // namespace fewfire
