// Scores in 8 bits that rule out most pairs of a list, where lists are long because examples have moved far.
//
// With w⁰ = s·c + e and x̃ = t·k + e′, codes c and k of whole numbers, ⟨w, x̃⟩ is s·t·⟨c, k⟩ to within
// moved·‖x̃‖ + ‖e‖·‖x̃‖ + (‖w⁰‖ + ‖e‖)·‖e′‖, far less than the ‖w⁰‖·‖x̃ − x‖ that the list has to allow. Whole numbers
// are exact, so a pair whose ⟨c, k⟩ is not above the cutoff that follows cannot fire. Variants without 8-bit products
// skip this; the same pairs are found.
#pragma once

#include "kernels/drift_refresh.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

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
  if (depth < 2.0f * error) return;
  const float cutoff = (net.threshold - visit.bias - error) / (code.scale * call.code_scale);
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
