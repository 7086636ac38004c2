// Part of drift_lists.cpp: building the list of a neuron from its scores on all anchors, asking it how far a call has
// to read, and the 8-bit scores that rule out most of what it reads.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/drift_lists.hpp"
#include "kernels/drift_scores-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr float up = 1.0f + 0x1p-20f;  // more than the rounding of the few operations of a bound
constexpr float tiny = 1e-19f;         // more than what is lost where squares underflow
constexpr float least = 0x1p-120f;     // more than what is lost where scores do; and levels per unit of it are finite

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
  bound.fixed = net.rounding * (bound.norm * net.norm_limit + std::abs(bias) + std::abs(net.threshold)) * up + least;
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

// Scores in 8 bits that rule out most pairs of a list, where lists are long because examples have moved far.
//
// With w⁰ = s·c + e and x̃ = t·k + e′, codes c and k of whole numbers, ⟨w, x̃⟩ is s·t·⟨c, k⟩ to within
// moved·‖x̃‖ + ‖e‖·‖x̃‖ + (‖w⁰‖ + ‖e‖)·‖e′‖, far less than the ‖w⁰‖·‖x̃ − x‖ that the list has to allow. Whole numbers
// are exact, so a pair whose ⟨c, k⟩ is not above the cutoff that follows cannot fire. Variants without 8-bit products
// skip this; the same pairs are found.

#if defined(__AVX512VNNI__)
constexpr bool can_screen = true;
#else
constexpr bool can_screen = false;
#endif
constexpr std::size_t code_lanes = 64;
constexpr std::size_t most_coded_inputs = std::size_t{1} << 16;  // int32 holds their products, at most 127·255 each
using Wholes [[gnu::vector_size(64), gnu::may_alias]] = std::int32_t;
using EightWholes [[gnu::vector_size(32), gnu::may_alias]] = std::int32_t;

// The code of the weights of a slot.
inline void encode(const DriftNet& net, DriftPiece& piece, std::size_t slot) {
  if constexpr (!can_screen) return;
  const float* w = net.weights.data() + piece.slots[slot].neuron * net.stride;
  std::int8_t* code = piece.code_rows.data() + slot * net.code_stride;
  float largest = 0.0f;
  for (std::size_t k = 0; k < net.inputs; ++k) largest = std::max(largest, std::abs(w[k]));
  const float scale = largest > 1e-30f ? largest / 127.0f : 1.0f, inverse = 1.0f / scale;
  double squares = 0.0;
  std::int32_t sum = 0;
  for (std::size_t k = 0; k < net.inputs; ++k) {
    const float rounded = std::nearbyint(w[k] * inverse);
    const double error = static_cast<double>(w[k]) - static_cast<double>(scale) * rounded;
    squares += error * error;
    code[k] = static_cast<std::int8_t>(rounded);
    sum += code[k];
  }
  piece.codes[slot] = {scale, static_cast<float>(std::sqrt(squares)) * (1.0f + net.rounding) + tiny, sum};
}

// Sets how the visit can be screened; not worth it where the list is as short as the 8-bit scores are coarse.
inline void set_cutoff(const DriftNet& net, const DriftPiece& piece, const DriftCall& call, float depth,
                       DriftVisit& visit) {
  visit.screened = false;
  if constexpr (!can_screen) return;
  if (net.inputs > most_coded_inputs) return;
  const DriftBound& bound = piece.bounds[visit.slot];
  const DriftCode& code = piece.codes[visit.slot];
  const float error = ((bound.moved + code.error) * call.norm + (bound.norm + code.error) * call.code_error +
                       bound.moved * net.rounding * net.norm_limit + bound.fixed) * up;
  const float unit = code.scale * call.code_scale;
  if (depth < 2.0f * error || !(unit >= least)) return;  // below, the product of the scales is not right to a part of it
  const float cutoff = (net.threshold - visit.bias - error) / unit;
  if (!(std::abs(cutoff) < 1e9f)) return;
  visit.cutoff = static_cast<std::int32_t>(std::floor(cutoff - std::abs(cutoff) * 0x1p-20f)) - 1 + 128 * code.sum;
  visit.screened = true;
}

// The ids that the 8-bit scores do not rule out. Up to eight slots behind them are written.
[[gnu::noinline]] std::size_t screen([[maybe_unused]] const std::int8_t* code, [[maybe_unused]] const std::uint8_t* codes,
                          [[maybe_unused]] std::size_t code_stride, [[maybe_unused]] std::int32_t cutoff,
                          [[maybe_unused]] const std::uint32_t* ids, std::size_t count,
                          [[maybe_unused]] std::uint32_t* kept) {
#if defined(__AVX512VNNI__)
  std::size_t survivors = 0;
  for_blocks(ids, count, [&](const std::uint32_t* block, std::uint32_t valid) {
    Wholes sums[pairs] = {};
    for (std::size_t at = 0; at < code_stride; at += code_lanes) {
      const __m512i weights = _mm512_load_si512(code + at);
#pragma GCC unroll 8
      for (std::size_t j = 0; j < pairs; ++j)
        sums[j] = (Wholes)_mm512_dpbusd_epi32((__m512i)sums[j], _mm512_load_si512(codes + block[j] * code_stride + at),
                                              weights);
    }
    const auto mask = _mm256_cmpgt_epi32_mask((__m256i)fold<EightWholes>(sums), _mm256_set1_epi32(cutoff));
    survivors += compress(block, mask & valid, kept + survivors);
  });
  return survivors;
#else
  return count;
#endif
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
