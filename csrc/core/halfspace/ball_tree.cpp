#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/parallel.hpp"
#include "core/halfspace/ball_tree.hpp"

namespace fewfire {
namespace {

enum Field { along_field, across_field, low_field, high_field, norm_field, cosine_field, sine_field, inverse_field };

constexpr float infinity = std::numeric_limits<float>::infinity();

float up(double value) { return std::nextafter(static_cast<float>(value), infinity); }
float down(double value) { return std::nextafter(static_cast<float>(value), -infinity); }

// Makes the rows orthonormal (Gram–Schmidt, twice for accuracy); a row that vanishes becomes zero.
void orthonormalise(std::vector<double>& rows, std::size_t count, std::size_t dimension) {
  const auto dot = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t j = 0; j < dimension; ++j) sum += rows[a * dimension + j] * rows[b * dimension + j];
    return sum;
  };
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t again = 0; again < 2; ++again)
      for (std::size_t other = 0; other < r; ++other) {
        const double product = dot(r, other);
        for (std::size_t j = 0; j < dimension; ++j) rows[r * dimension + j] -= product * rows[other * dimension + j];
      }
    const double length = std::sqrt(dot(r, r));
    for (std::size_t j = 0; j < dimension; ++j) rows[r * dimension + j] *= length > 1e-200 ? 1 / length : 0.0;
  }
}

}  // namespace

double BallTree::rounding() const {
  // Score and bound each round at most d + 6 times by 2^-24 of (‖c‖ + R)·‖a‖ + |b|. Half as much again, since R is what
  // the parts along and across the axes make together, which a moved point may trade for each other.
  return 1.1 * 3 * static_cast<double>(blocks_.dimension() + 6) * 0x1p-24;
}

NodeBounds BallTree::bounds(std::size_t node) const {
  return {field(node, fields),       field(node, along_field),  field(node, across_field),
          field(node, low_field),    field(node, high_field),   field(node, norm_field),
          field(node, cosine_field), field(node, sine_field),   field(node, inverse_field)};
}

void BallTree::store(std::size_t node, std::size_t child, const Extent& extent) {
  double square = 0;
  for (std::size_t j = 0; j < blocks_.dimension(); ++j) {
    const auto centre = static_cast<float>(extent.centre[j]);
    field(node, fields)[j * node_children + child] = centre;
    square += static_cast<double>(centre) * centre;
  }
  const double length = std::sqrt(square), slack = rounding();
  const bool cone = extent.cone && length > least_cone_norm && length < 1e30 && extent.cosine > 1e-3;
  const double cosine = extent.cosine - 1e-6;  // the angle a little wider than it is
  // ‖a‖ ≤ ‖a₁‖ + ‖a₂‖, so what is lost to rounding, a part of ‖a‖, is added to both.
  const double lost = slack * (length + extent.along + extent.across);
  field(node, along_field)[child] = axes_.empty() ? 0.0f : up(extent.along * (1 + 1e-6) + lost);
  field(node, across_field)[child] = up(extent.across * (1 + 1e-6) + lost);
  field(node, low_field)[child] = down(extent.low_offset - slack * std::fabs(extent.low_offset));
  field(node, high_field)[child] = up(extent.high_offset + slack * std::fabs(extent.high_offset));
  field(node, norm_field)[child] = cone ? up(extent.norm * (1 + 1e-6 + slack)) : infinity;
  field(node, cosine_field)[child] = cone ? static_cast<float>(cosine) : -2.0f;  // −2: always within the cone
  field(node, sine_field)[child] = cone ? up(std::sqrt(std::max(0.0, 1 - cosine * cosine))) : 1.0f;
  field(node, inverse_field)[child] = cone ? static_cast<float>(1 / length) : 0.0f;
}

bool BallTree::move(std::size_t slot, const float* row, float offset, double* gaps) {
  const std::size_t block = slot / block_points, dimension = blocks_.dimension();
  double norm = 0;
  for (std::size_t j = 0; j < dimension; ++j) norm += static_cast<double>(row[j]) * row[j];
  norm = std::sqrt(norm);
  double product;
  const auto distance = [&](std::size_t node, std::size_t child) {
    const float* centres = field(node, fields) + child;
    product = 0;
    for (std::size_t j = 0; j < dimension; ++j) {
      gaps[j] = row[j] - static_cast<double>(centres[j * node_children]);
      product += static_cast<double>(centres[j * node_children]) * row[j];
    }
    return parts(gaps);
  };
  std::uint32_t node = leaf_node_[block], child = leaf_child_[block];
  const double reach = 1.5 * static_cast<double>(leaf_radius_[block]);
  const auto [far_along, far_across] = distance(node, child);
  if (!(std::hypot(far_along, far_across) <= reach)) return false;
  if (offset > field(node, high_field)[child] + reach / 3 || offset < field(node, low_field)[child] - reach / 3)
    return false;
  const double slack = rounding();
  for (; node != no_node; child = nodes_[node].parent_child, node = nodes_[node].parent) {
    const auto [along, across] = distance(node, child);
    const auto raise = [&](Field which, float value) {
      field(node, which)[child] = std::max(field(node, which)[child], value);
    };
    const double lost = slack * (norm + 2 * (along + across));
    if (!axes_.empty()) raise(along_field, up(along * (1 + 1e-6) + lost));
    raise(across_field, up(across * (1 + 1e-6) + lost));
    raise(high_field, up(offset + slack * std::fabs(offset)));
    field(node, low_field)[child] = std::min(field(node, low_field)[child], down(offset - slack * std::fabs(offset)));
    if (field(node, cosine_field)[child] == -2.0f) continue;
    raise(norm_field, up(norm * (1 + 1e-6 + slack)));
    const double cosine = norm > 0 ? product * field(node, inverse_field)[child] / norm - 2e-6 : -1;
    if (cosine < field(node, cosine_field)[child]) {
      const bool cone = cosine > 1e-3;
      field(node, cosine_field)[child] = cone ? static_cast<float>(cosine) : -2.0f;
      field(node, sine_field)[child] = cone ? up(std::sqrt(1 - cosine * cosine)) : 1.0f;
      if (!cone) field(node, norm_field)[child] = infinity, field(node, inverse_field)[child] = 0.0f;
    }
  }
  blocks_.write(slot, blocks_.id(slot), row, offset);
  return true;
}

void BallTree::search(NodeQuery query, std::vector<std::uint32_t>& stack, std::vector<std::uint32_t>& leaves,
                      std::vector<std::pair<std::uint32_t, std::uint32_t>>& ranges,
                      HalfspaceCounters& counters) const {
  const auto [along, across] = parts(query.row);
  query.along = up(along * (1 + 1e-6)), query.across = up(across * (1 + 1e-6));
  stack.assign(1, 0);
  std::uint64_t visited = 0;
  while (!stack.empty()) {
    const std::uint32_t at = stack.back();
    stack.pop_back();
    ++visited;
    const Node& node = nodes_[at];
    std::uint32_t visit, inside;
    FEWFIRE_DISPATCH(bound_children, bounds(at), blocks_.dimension(), query, visit, inside);
    const std::uint32_t present = (1u << node.children) - 1;
    for (std::uint32_t mask = inside & present; mask; mask &= mask - 1) {
      const int i = std::countr_zero(mask);
      ranges.emplace_back(node.first[i], node.last[i]);
    }
    for (std::uint32_t mask = visit & ~inside & present; mask; mask &= mask - 1) {
      const int i = std::countr_zero(mask);
      (node.leaves ? leaves : stack).push_back(node.child[i]);
      if (!node.leaves) __builtin_prefetch(field(node.child[i], 0));
    }
  }
  counters.nodes += visited;
  counters.bytes += visited * (fields + blocks_.dimension()) * node_children * sizeof(float);
}

std::size_t BallTree::memory() const {
  return blocks_.memory() + nodes_.capacity() * sizeof(Node) + bounds_.capacity() * sizeof(float) +
         leaf_node_.capacity() * 9;
}

// The main axes of a tree: in which few directions points stray from the centre of their block.

void BallTree::find_axes(const HalfspacePoints& points) {
  const std::size_t dimension = blocks_.dimension(), blocks = blocks_.blocks();
  const std::size_t most = std::min(most_axes, dimension / 2);
  if (most == 0 || dimension > 512) return;
  // What a sample of blocks leaves when its centre is taken off, each scaled by the whole so that sums stay in range.
  std::vector<double> gaps;
  const std::size_t step = std::max<std::size_t>(blocks / 32, 1);
  double total = 0;
  for (std::size_t block = 0; block < blocks; block += step) {
    const std::size_t first = block * block_points, last = std::min(first + block_points, points.ids.size());
    std::vector<double> centre(dimension, 0.0);
    const auto row = [&](std::size_t at) { return points.rows.data() + at * dimension; };
    for (std::size_t at = first; at < last; ++at)
      for (std::size_t j = 0; j < dimension; ++j) centre[j] += row(at)[j] / static_cast<double>(last - first);
    for (std::size_t at = first; at < last; ++at)
      for (std::size_t j = 0; j < dimension; ++j) {
        gaps.push_back(row(at)[j] - centre[j]);
        total += gaps.back() * gaps.back();
      }
  }
  if (!(total > 0) || total > 1e60) return;
  // A few rounds of subspace iteration; directions need not be exact, any orthonormal ones give valid bounds.
  std::vector<double> axes(most * dimension), spread(most);
  for (std::size_t r = 0; r < most; ++r)
    for (std::size_t j = 0; j < dimension; ++j) axes[r * dimension + j] = (r + j) % most == 0 ? 1.0 : 0.01 * double(j % 7);
  for (int round = 0; round < 6; ++round) {
    orthonormalise(axes, most, dimension);
    std::vector<double> next(axes.size(), 0.0);
    std::fill(spread.begin(), spread.end(), 0.0);
    for (const double* gap = gaps.data(); gap < gaps.data() + gaps.size(); gap += dimension)
      for (std::size_t r = 0; r < most; ++r) {
        double product = 0;
        for (std::size_t j = 0; j < dimension; ++j) product += gap[j] * axes[r * dimension + j];
        for (std::size_t j = 0; j < dimension; ++j) next[r * dimension + j] += product * gap[j] / total;
        spread[r] += product * product / total;
      }
    if (round < 5) axes = std::move(next);
  }
  // With k axes a query of random direction sees √(share·k/d) + √((1 − share)(1 − k/d)) of the radius.
  double best = 0.7, share = 0;
  std::size_t count = 0;
  for (std::size_t k = 1; k <= most; ++k) {
    share = std::min(share + spread[k - 1], 1.0);
    const double part = static_cast<double>(k) / static_cast<double>(dimension);
    const double seen = std::sqrt(share * part) + std::sqrt((1 - share) * (1 - part));
    if (seen < best) best = seen, count = k;
  }
  axes.resize(count * dimension);
  axes_ = std::move(axes);
}

// Building a ball tree: halve the points across the line between two far-apart ones until sixteen parts are left, each
// a child; a full subtree fills its blocks, so all but the last ones of each level are full.

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
    interruptible_for(pieces, threads, [&](std::size_t piece) {
      interruption_point();
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
      if ((at - first) % 1024 == 0) interruption_point();
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
    interruptible_for(2, std::min<std::size_t>(threads, 2), [&](std::size_t side) {
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
    interruptible_for(level.size(), outer, [&](std::size_t n) {
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
  interruptible_for(ranges.size(), threads, [&](std::size_t n) {
    interruption_point();
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
