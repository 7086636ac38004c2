// Bounds on the scores of whole subtrees, sixteen children of a node at a time.
//
// A child holds points around a centre c, at most R₁ away along the few main axes of the tree and R₂ across them (ball),
// norms of at most N within the angle ω of c (cone), offsets in [b₋, b₊]. With s = ⟨c, a⟩, a₁ and a₂ the parts of a along
// and across the axes, r = R₁‖a₁‖ + R₂‖a₂‖ and cos θ = s/(‖c‖·‖a‖), every score lies in
//
//   [s − r + b₋,  s + r + b₊]   and at most   N‖a‖·max(cos(θ − ω), 0) + b₊ when θ > ω.
//
// Radii and norm are stored with what rounding may add, of the bounds here and of the score itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu.hpp"

namespace fewfire {

constexpr std::size_t node_children = 16;
// Cones serve centres and queries of at least this norm: below, ⟨c, a⟩ may underflow, and cos θ with it says nothing.
constexpr double least_cone_norm = 1e-18;

struct NodeBounds {
  const float* centres;  // coordinate by coordinate, 16 children each
  const float *along, *across, *low_offset, *high_offset;  // R₁, R₂, b₋, b₊
  const float *cone_norm, *cone_cosine, *cone_sine, *inverse_norm;  // N, cos ω, sin ω, 1/‖c‖
};

struct NodeQuery {
  const float* row;
  float along, across;       // ‖a₁‖, ‖a₂‖
  float norm, inverse_norm;  // ‖a‖ and its inverse, 0 where a cone would not help
  float low, high;           // a child with all scores at most `low` is out, with all above `high` is in
};

FEWFIRE_DECLARE(
    // Bit i of visit: child i may hold a point above; of inside: it holds nothing else (bits of visit that are also set
    // in inside need no visit).
    void bound_children(const NodeBounds& node, std::size_t dimension, const NodeQuery& query, std::uint32_t& visit,
                        std::uint32_t& inside);)

}  // namespace fewfire
