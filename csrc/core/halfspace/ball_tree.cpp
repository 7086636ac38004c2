#include "core/halfspace/ball_tree.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace fewfire {
namespace {

enum Field { along_field, across_field, low_field, high_field, norm_field, cosine_field, sine_field, inverse_field };

constexpr float infinity = std::numeric_limits<float>::infinity();

float up(double value) { return std::nextafter(static_cast<float>(value), infinity); }
float down(double value) { return std::nextafter(static_cast<float>(value), -infinity); }

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

bool BallTree::move(std::size_t slot, const float* row, float offset) {
  const std::size_t block = slot / block_points, dimension = blocks_.dimension();
  double norm = 0;
  for (std::size_t j = 0; j < dimension; ++j) norm += static_cast<double>(row[j]) * row[j];
  norm = std::sqrt(norm);
  std::vector<double> gaps(dimension);
  double product;
  const auto distance = [&](std::size_t node, std::size_t child) {
    const float* centres = field(node, fields) + child;
    product = 0;
    for (std::size_t j = 0; j < dimension; ++j) {
      gaps[j] = row[j] - static_cast<double>(centres[j * node_children]);
      product += static_cast<double>(centres[j * node_children]) * row[j];
    }
    return parts(gaps.data());
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

}  // namespace fewfire
