// Building the list of a neuron from its scores on all anchors, and asking it how far a call has to read.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/drift_lists.hpp"
#include "kernels/drift_scores.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr float up = 1.0f + 0x1p-20f;  // more than the rounding of the few operations of a bound
constexpr float tiny = 1e-19f;         // more than what is lost where squares underflow

// At least the norm of a vector with these sums of squares by lane.
inline float norm_above(const DriftNet& net, Floats squares) {
  return std::sqrt(sum_lanes(squares)) * (1.0f + net.rounding) + tiny;
}

// Depth up to which entries can fire in the call, when the weights have moved that far.
inline float need(const DriftNet& net, const DriftBound& bound, const DriftCall& call, float moved) {
  return (bound.norm * call.distance + moved * (call.norm + net.rounding * net.norm_limit) + bound.fixed) * up;
}

// The level of a depth; both sides of every comparison of depths go through this monotone function.
inline std::size_t level_of(const DriftSlot& slot, float depth) {
  return depth < 0.0f ? 0 : 1 + static_cast<std::size_t>(depth * slot.levels_per_unit);
}
inline bool in_range(const DriftSlot& slot, float depth) {
  return depth * slot.levels_per_unit <= static_cast<float>(drift_levels - 2);
}

// Starts the slot's bound anew at the weights w and sorts its entries by level into `piece.ids`, in place where they
// fit. Within a level ids ascend.
inline void build_list(const DriftNet& net, DriftPiece& piece, DriftSlot& slot, DriftBound& bound, const float* scores) {
  const float* w = net.weights.data() + slot.neuron * net.stride;
  const float bias = net.bias[slot.neuron];
  Floats squares{};
  for (std::size_t at = 0; at < net.stride; at += lanes) squares += load(w + at) * load(w + at);
  bound.norm = norm_above(net, squares);
  bound.fixed = net.rounding * (bound.norm * net.norm_limit + std::abs(bias) + std::abs(net.threshold)) * up;
  bound.moved = slot.excess = 0.0f;
  const float depth = (bound.norm * net.reach + slot.skin + 2 * bound.fixed) * up;
  slot.levels_per_unit = static_cast<float>(drift_levels - 2) / depth;
  const float low = net.threshold - bias - 1.1f * depth;  // a first cut with room for rounding; levels decide
  std::uint32_t counts[drift_levels] = {}, picked = 0;
  std::uint32_t* entries = piece.picked.data();  // example, level
  float top = depth;
  for (std::size_t at = 0; at < net.columns; at += pairs)
    for (std::uint32_t mask = above(*reinterpret_cast<const Scores*>(scores + at), low); mask != 0; mask &= mask - 1) {
      const std::size_t i = at + static_cast<std::size_t>(__builtin_ctz(mask));
      const float below = net.threshold - (scores[i] + bias);
      if (i >= net.examples || !in_range(slot, below)) continue;
      const std::size_t level = level_of(slot, below);
      top = std::min(top, below);
      ++counts[level];
      entries[2 * picked] = static_cast<std::uint32_t>(i);
      entries[2 * picked++ + 1] = static_cast<std::uint32_t>(level);
    }
  bound.top = top;
  if (picked > slot.capacity) {
    if (piece.ids.size() + picked > 0xffffffffu) throw std::length_error("too many pairs near the threshold");
    piece.garbage += slot.capacity;
    slot.first = static_cast<std::uint32_t>(piece.ids.size());
    slot.capacity = picked;
    piece.ids.resize(piece.ids.size() + picked);
  }
  slot.length = picked;
  std::uint32_t total = 0;
  for (std::size_t level = 0; level < drift_levels; ++level) {
    const std::uint32_t start = total;
    total += counts[level];
    counts[level] = start;
    slot.ends[level] = static_cast<std::uint16_t>((total + net.unit - 1) / net.unit);
  }
  std::uint32_t* ids = piece.ids.data() + slot.first;
  for (std::uint32_t entry = 0; entry < picked; ++entry) ids[counts[entries[2 * entry + 1]]++] = entries[2 * entry];
}

// How many entries have a depth up to the one given, which is in range.
inline std::uint32_t entries_to(const DriftNet& net, const DriftSlot& slot, float depth) {
  return std::min(net.unit * slot.ends[level_of(slot, depth)], slot.length);
}

// Takes out slots that hold nothing any more, and the holes in `ids` when they are the larger part.
inline void tidy(const DriftNet& net, DriftPiece& piece) {
  if (piece.emptied) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < piece.slots.size(); ++k) {
      if (piece.slots[k].length == 0) {
        piece.garbage += piece.slots[k].capacity;
        continue;
      }
      piece.slots[kept] = piece.slots[k];
      piece.bounds[kept] = piece.bounds[k];
      piece.codes[kept] = piece.codes[k];
      std::copy_n(piece.code_rows.data() + k * net.code_stride, net.code_stride,
                  piece.code_rows.data() + kept++ * net.code_stride);
    }
    piece.slots.resize(kept);
    piece.bounds.resize(kept);
    piece.codes.resize(kept);
    piece.code_rows.resize(kept * net.code_stride);
    piece.emptied = false;
  }
  if (2 * piece.garbage <= piece.ids.size()) return;
  std::vector<std::uint32_t> kept;
  kept.reserve(piece.ids.size() - piece.garbage);
  for (DriftSlot& slot : piece.slots) {
    const auto from = piece.ids.begin() + slot.first;
    slot.first = static_cast<std::uint32_t>(kept.size());
    slot.capacity = slot.length;
    kept.insert(kept.end(), from, from + slot.capacity);
  }
  piece.ids.swap(kept);
  piece.garbage = 0;
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
