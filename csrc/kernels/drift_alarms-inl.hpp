// Part of drift_lists.cpp: alarms, the readings of an odometer at which pairs have to be scored again.
// Lists are read 16 pairs at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/drift_lists.hpp"
#include "kernels/drift_scores-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr float up = 1.0f + 0x1p-20f;    // more than the rounding of the few operations of a bound
constexpr float down = 1.0f - 0x1p-20f;
constexpr float tiny = 1e-19f;           // more than what is lost where squares underflow
constexpr float least = 0x1p-120f;       // more than what is lost where scores and readings do

// At least the norm of a vector with these sums of squares by lane.
inline float norm_above(const DriftNet& net, Floats squares) {
  return std::sqrt(sum_lanes(squares)) * (1.0f + net.rounding) + tiny;
}

// Turns scores z − τ of a neuron into alarms of their pairs, with the sign of what fires. Vectors of any width.
struct AlarmRule {
  float start, margin, inverse;  // from where they count; of the scores; at most 1/‖w‖

  AlarmRule(float from, float below, float factor) : start(from), margin(below), inverse(factor) {}
  AlarmRule(const DriftNet& net, const DriftSlot& slot, float from, float strain)
      : start(from + strain),
        margin((slot.fixed + net.rounding * strain * slot.norm) * up),
        inverse(down / ((slot.norm + strain / slot.rate) * up)) {}

  template <class Vector>
  [[gnu::always_inline]] Vector operator()(Vector above) const {
    const Vector slack = (above < 0.0f ? -above : above) - margin;
    const Vector alarm = (slack * inverse + start) * down - least;
    const Vector none{}, rest = slack > 0.0f && alarm > 0.0f ? alarm : none;
    return above > 0.0f ? -rest : rest;
  }
};

// Alarms in 16 bits, cut off towards zero.
inline std::uint16_t cut(float alarm) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(alarm) >> 16); }
constexpr std::size_t upper_half = std::endian::native == std::endian::little ? 1 : 0;
inline float uncut(std::uint16_t alarm) { return std::bit_cast<float>(static_cast<std::uint32_t>(alarm) << 16); }

// Alarms without their signs, infinity where the mask has no bit.
[[gnu::always_inline]] inline Scores sizes(Scores alarms, std::uint32_t mask) {
  const Scores size = alarms < 0.0f ? -alarms : alarms, never = Scores{} + std::numeric_limits<float>::infinity();
#if defined(__AVX512VL__)
  return (Scores)_mm256_mask_blend_ps(static_cast<__mmask8>(mask), (__m256)never, (__m256)size);
#else
  Scores result = never;
  for (std::size_t j = 0; j < pairs; ++j)
    if (mask >> j & 1) result[j] = size[j];
  return result;
#endif
}

[[gnu::always_inline]] inline float smallest(Scores v) {
  const Scores w = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3), a = w < v ? w : v;
  return std::min(std::min(a[0], a[1]), std::min(a[2], a[3]));
}

constexpr std::size_t group = 16;

// Bits of the entries that are there.
[[gnu::always_inline]] inline std::uint32_t entries(std::size_t left) {
  return left >= group ? 0xffffu : (1u << left) - 1;
}

#if defined(__AVX512F__)
[[gnu::always_inline]] inline __m512i iota(std::uint32_t from) {
  return _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                          _mm512_set1_epi32(static_cast<int>(from)));
}
[[gnu::always_inline]] inline __m512i wide_ids(const std::uint16_t* low, const std::uint16_t* high, std::size_t at,
                                               __mmask16 valid) {
  const __m512i ids = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(valid, low + at));
  if (high == nullptr) return ids;
  return _mm512_or_si512(
      ids, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(valid, high + at)), 16));
}
[[gnu::always_inline]] inline __m512i wide_alarms(const std::uint16_t* alarms, __mmask16 valid) {
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(valid, alarms)), 16);
}
#endif

// Entries first … first + length to be scored: those whose alarm the reading has come to, and on request all that fire.
// Writes their examples and places, padded with zeros to a multiple of eight, with room for 16 more; `others` becomes
// the first alarm of the rest. Returns how many.
[[gnu::always_inline]] inline std::size_t pick(const DriftEntries& ids, const std::uint16_t* alarms, std::uint32_t first,
                                               std::size_t length, float reading, bool firing, std::uint32_t* picked,
                                               std::uint32_t* places, float& others) {
  std::size_t count = 0;
#if defined(__AVX512F__)
  const std::uint16_t *low = ids.low.data() + first, *high = ids.high.empty() ? nullptr : ids.high.data() + first;
  const __m512 shown = _mm512_set1_ps(reading);
  const auto wanted = static_cast<__mmask16>(firing ? 0xffff : 0);
  __m512i place = iota(first);
  __m512 lowest = _mm512_set1_ps(std::numeric_limits<float>::infinity());
  for (std::size_t at = 0; at < length; at += group) {
    const auto valid = static_cast<__mmask16>(entries(length - at));
    const __m512i alarm = wide_alarms(alarms + first + at, valid);
    const __m512 size = _mm512_abs_ps(_mm512_castsi512_ps(alarm));
    const __mmask16 fires = _mm512_movepi32_mask(alarm) & wanted;
    const __mmask16 due = _mm512_mask_cmp_ps_mask(valid, shown, size, _CMP_NLT_UQ);
    const auto mask = static_cast<__mmask16>(due | fires);
    lowest = _mm512_mask_min_ps(lowest, static_cast<__mmask16>(valid & ~mask), lowest, size);
    _mm512_storeu_si512(picked + count, _mm512_maskz_compress_epi32(mask, wide_ids(low, high, at, valid)));
    _mm512_storeu_si512(places + count, _mm512_maskz_compress_epi32(mask, place));
    count += static_cast<std::size_t>(__builtin_popcount(mask));
    place = _mm512_add_epi32(place, _mm512_set1_epi32(group));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(picked + count), _mm256_setzero_si256());
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(places + count), _mm256_setzero_si256());
  others = _mm512_reduce_min_ps(lowest);
#else
  others = std::numeric_limits<float>::infinity();
  for (std::size_t at = first; at < first + length; ++at) {
    const float alarm = uncut(alarms[at]);
    const bool due = !(reading < std::abs(alarm)) || (firing && std::signbit(alarm));
    picked[count] = ids[at];
    places[count] = static_cast<std::uint32_t>(at);
    count += due;
    others = due ? others : std::min(others, std::abs(alarm));
  }
  for (std::size_t pad = count; pad % pairs != 0; ++pad) picked[pad] = places[pad] = 0;
#endif
  return count;
}

// Entries of a list that fire, with room for 16 more, and the first of its alarms, with a sign if any fires.
[[gnu::always_inline]] inline std::size_t settle(const DriftEntries& ids, const std::uint16_t* alarms,
                                                 std::uint32_t first, std::size_t length, std::uint32_t* active,
                                                 float& soonest) {
  std::size_t count = 0;
#if defined(__AVX512F__)
  const std::uint16_t *low = ids.low.data() + first, *high = ids.high.empty() ? nullptr : ids.high.data() + first;
  __m512 lowest = _mm512_set1_ps(std::numeric_limits<float>::infinity());
  for (std::size_t at = 0; at < length; at += group) {
    const auto valid = static_cast<__mmask16>(entries(length - at));
    const __m512i alarm = wide_alarms(alarms + first + at, valid);
    const __mmask16 fires = _mm512_movepi32_mask(alarm);
    lowest = _mm512_mask_min_ps(lowest, valid, lowest, _mm512_abs_ps(_mm512_castsi512_ps(alarm)));
    _mm512_storeu_si512(active + count, _mm512_maskz_compress_epi32(fires, wide_ids(low, high, at, valid)));
    count += static_cast<std::size_t>(__builtin_popcount(fires));
  }
  const float lowest_alarm = _mm512_reduce_min_ps(lowest);
#else
  float lowest_alarm = std::numeric_limits<float>::infinity();
  for (std::size_t at = first; at < first + length; ++at) {
    const float alarm = uncut(alarms[at]);
    lowest_alarm = std::min(lowest_alarm, std::abs(alarm));
    active[count] = ids[at];
    count += std::signbit(alarm);
  }
#endif
  soonest = count == 0 ? lowest_alarm : -lowest_alarm;
  return count;
}

// Slots of which something fires or has to be scored at the site, ascending, with room for 16 more.
inline std::size_t find_visits(const DriftNet& net, const DriftPiece& piece, std::size_t site, std::uint32_t* visits) {
  const std::size_t slots = piece.slots.size();
  const float* alarms = piece.alarms[site].neurons.data();
  std::size_t count = 0;
#if defined(__AVX512F__)
  const __m512 reading = _mm512_set1_ps(net.reading[site]), above = _mm512_set1_ps(up);
  __m512i slot = iota(0);
  for (std::size_t k = 0; k < slots; k += group) {
    const auto valid = static_cast<__mmask16>(entries(slots - k));
    const __m512 strain = _mm512_maskz_loadu_ps(valid, piece.strains.data() + k);
    const __m512 alarm = _mm512_maskz_loadu_ps(valid, alarms + k);
    const __m512 shown = _mm512_mul_ps(_mm512_add_ps(strain, reading), above);
    const __mmask16 due = _mm512_mask_cmp_ps_mask(valid, shown, _mm512_abs_ps(alarm), _CMP_NLT_UQ);
    const auto mask = static_cast<__mmask16>(due | (_mm512_movepi32_mask(_mm512_castps_si512(alarm)) & valid));
    _mm512_storeu_si512(visits + count, _mm512_maskz_compress_epi32(mask, slot));
    count += static_cast<std::size_t>(__builtin_popcount(mask));
    slot = _mm512_add_epi32(slot, _mm512_set1_epi32(group));
  }
#else
  for (std::size_t k = 0; k < slots; ++k) {
    visits[count] = static_cast<std::uint32_t>(k);
    count += std::signbit(alarms[k]) || !((net.reading[site] + piece.strains[k]) * up < std::abs(alarms[k]));
  }
#endif
  return count;
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
