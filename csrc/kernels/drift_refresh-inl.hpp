// Part of drift_lists.cpp: building the list of a neuron from its scores on all anchors, with alarms at every site.
#pragma once

#include <stdexcept>

#include "kernels/drift_alarms-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Entries that can fire before the weights have moved by the skin: ids into `piece.picked`, scores above τ into
// `piece.active_scores`, with room for 16 more. Starts the slot's bounds anew.
inline std::uint32_t pick_entries(const DriftNet& net, DriftPiece& piece, std::size_t slot, const float* scores) {
  DriftSlot& own = piece.slots[slot];
  const float* w = net.weights.data() + own.neuron * net.stride;
  const float bias = own.bias = net.bias[own.neuron];
  own.output = net.output[own.neuron];
  Floats squares{};
  for (std::size_t at = 0; at < net.stride; at += lanes) squares += load(w + at) * load(w + at);
  own.norm = norm_above(net, squares);
  own.fixed = net.rounding * (own.norm * net.norm_limit + std::abs(bias) + std::abs(net.threshold)) * up + least;
  own.made = piece.passes;
  const float largest = net.norm_limit * (1.0f + net.rounding) * up;
  own.rate = largest * up / own.norm;
  own.limit = own.skin / own.norm * (1.0f - 0x1p-18f);
  piece.strains[slot] = 0.0f;
  const float depth = (own.norm * net.reach + own.skin + 2 * own.fixed) * up;
  std::uint32_t count = 0;
  std::uint32_t* picked = piece.picked.data();
  float* found = piece.active_scores.data();
#if defined(__AVX512F__)
  const __m512 shift = _mm512_set1_ps(bias), threshold = _mm512_set1_ps(net.threshold), low = _mm512_set1_ps(-depth);
  __m512i id = iota(0);
  for (std::size_t at = 0; at < net.columns; at += group) {
    const __m512 above = _mm512_sub_ps(_mm512_add_ps(_mm512_load_ps(scores + at), shift), threshold);
    const auto valid = static_cast<__mmask16>(entries(net.examples - at));
    const __mmask16 mask = _mm512_mask_cmp_ps_mask(valid, above, low, _CMP_NLT_UQ);
    _mm512_storeu_si512(picked + count, _mm512_maskz_compress_epi32(mask, id));
    _mm512_storeu_ps(found + count, _mm512_maskz_compress_ps(mask, above));
    count += static_cast<std::uint32_t>(__builtin_popcount(mask));
    id = _mm512_add_epi32(id, _mm512_set1_epi32(group));
  }
#else
  for (std::size_t i = 0; i < net.examples; ++i) {
    const float above = scores[i] + bias - net.threshold;
    picked[count] = static_cast<std::uint32_t>(i);
    found[count] = above;
    count += !(above < -depth);
  }
#endif
  return count;
}

// Gives all columns of the entries that size.
inline void resize_entries(const DriftNet& net, DriftPiece& piece, std::size_t size) {
  piece.ids.low.resize(size);
  if (net.examples > 0x10000) piece.ids.high.resize(size);
  for (std::size_t site = 0; site < net.sites; ++site) piece.alarms[site].pairs.resize(size);
}

// Makes the list of a slot from the scores of its neuron, in place where it fits, and the alarms of its pairs.
inline void build_list(const DriftNet& net, DriftPiece& piece, std::size_t slot, const float* scores) {
  const std::uint32_t count = pick_entries(net, piece, slot, scores);
  DriftSlot& own = piece.slots[slot];
  if (count > own.capacity) {
    const std::size_t size = piece.ids.size();
    if (size + 2 * std::size_t{count} + group > 0xffffffffu) throw std::length_error("too many pairs near the threshold");
    piece.garbage += own.capacity;
    own.first = static_cast<std::uint32_t>(size);
    own.capacity = count + count / 4;
    resize_entries(net, piece, size + own.capacity);
  }
  own.length = count;
  const std::uint32_t* ids = piece.picked.data();
  for (std::size_t at = 0; at < count; ++at) piece.ids.low[own.first + at] = static_cast<std::uint16_t>(ids[at]);
  if (!piece.ids.high.empty())
    for (std::size_t at = 0; at < count; ++at) piece.ids.high[own.first + at] = static_cast<std::uint16_t>(ids[at] >> 16);
  for (std::size_t site = 0; site < net.sites; ++site) {
    const AlarmRule rule(net, own, net.anchor_start[site], 0.0f);
    std::uint16_t* alarms = piece.alarms[site].pairs.data() + own.first;
    const float* above = piece.active_scores.data();
    for (std::uint32_t at = 0; at < count; at += group) {
      const auto wide = rule(*reinterpret_cast<const UnalignedFloats*>(above + at));
      const std::size_t here = std::min<std::size_t>(group, count - at);
      for (std::size_t j = 0; j < here; ++j) alarms[at + j] = cut(wide[j]);
    }
    settle(piece.ids, piece.alarms[site].pairs.data(), own.first, count, piece.places.data(),
           piece.alarms[site].neurons[slot]);
  }
}

// Takes out slots that hold nothing any more.
inline void drop_empty(const DriftNet& net, DriftPiece& piece) {
  std::size_t kept = 0;
  for (std::size_t k = 0; k < piece.slots.size(); ++k) {
    if (piece.slots[k].length == 0) {
      piece.garbage += piece.slots[k].capacity;
      continue;
    }
    piece.slots[kept] = piece.slots[k];
    piece.strains[kept] = piece.strains[k];
    for (std::size_t site = 0; site < net.sites; ++site)
      piece.alarms[site].neurons[kept] = piece.alarms[site].neurons[k];
    ++kept;
  }
  piece.slots.resize(kept);
  piece.strains.resize(kept);
  for (std::size_t site = 0; site < net.sites; ++site) piece.alarms[site].neurons.resize(kept);
}

// Takes out the holes between lists.
inline void compact(const DriftNet& net, DriftPiece& piece) {
  AlignedVector<std::uint16_t>* columns[2 + most_sites] = {&piece.ids.low, &piece.ids.high};
  for (std::size_t site = 0; site < net.sites; ++site) columns[2 + site] = &piece.alarms[site].pairs;
  std::size_t size = 1;
  for (const DriftSlot& slot : piece.slots) size += slot.length;
  for (std::size_t k = 0; k < 2 + net.sites; ++k) {
    if (columns[k]->empty()) continue;
    AlignedVector<std::uint16_t> kept(size);
    std::uint16_t* to = kept.data() + 1;
    for (const DriftSlot& slot : piece.slots) to = std::copy_n(columns[k]->data() + slot.first, slot.length, to);
    columns[k]->swap(kept);
  }
  std::uint32_t first = 1;
  for (DriftSlot& slot : piece.slots) {
    slot.first = first;
    first += slot.capacity = slot.length;
  }
  piece.garbage = 0;
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
