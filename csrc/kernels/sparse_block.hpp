// Exact sparse inference of a block y = Σ_j a(⟨w_j, x⟩ + b_j)·v_j + c: which neurons may fire, their scores, and the sum
// of the rows v_j of those that do.
//
// The score of a neuron is one float32 sum with one order on every instruction set: 64 partial sums, coordinate j into
// sum j mod 64 by a fused multiply-add, then folded in halves, then b added. It fires where the score is not at most the
// threshold τ. Sums over firing rows are fused multiply-adds in the order of the neurons.
//
// Codes decide most neurons without their weights. A row w is kept as ŵ = scale·c with integers |c_j| ≤ 127, an input x
// as x̂ = step·(255·h + l) in two parts, |h_j|, |l_j| ≤ 127, 16 bits together, and
//
//   ⟨w, x⟩ ≤ ⟨ŵ, x̂⟩ + ‖w − ŵ‖·‖x‖ + ‖ŵ‖·‖x − x̂‖                                        (Cauchy–Schwarz, twice).
//
// With the rounding of both ways of scoring added, a neuron whose bound is at most τ does not fire. One that is left
// *open* may be screened again by residual codes: w − ŵ ≈ scale′·r, |r_j| ≤ 7, four bits each, read for that row alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

// Neurons whose codes stand together: stored as c + 128, four coordinates of 16 neurons to a vector, as VNNI requires.
constexpr std::size_t group_neurons = 64;
// Coordinates up to which int32 holds every sum of products of codes.
constexpr std::size_t most_screened = std::size_t{1} << 15;
// What a unit of the high part of an input's code is worth in units of the low one.
constexpr float code_parts = 255.0f;
// Coordinates are filled up with zeros to a multiple of this; residual codes of coordinates k and k + 64 share a byte.
constexpr std::size_t code_step = 128;

inline std::size_t coded_inputs(std::size_t inputs) { return (inputs + code_step - 1) / code_step * code_step; }
inline std::size_t group_code_at(std::size_t neuron, std::size_t j) {
  return j / 4 * 4 * group_neurons + neuron * 4 + j % 4;
}

// The codes of 64 neurons and the numbers of their bounds; `error` and `coded` are rounded upwards.
struct NeuronGroup {
  const std::uint8_t* codes;
  const float *scales, *offsets, *error, *coded;  // b plus its rounding; ‖w − ŵ‖ plus rounding·‖w‖; ‖ŵ‖
};

// An input row as codes, filled up to coded_inputs.
struct CodedRow {
  const std::int8_t *high, *low;
  std::int32_t high_sum, low_sum;
  float step;        // what a unit of the low part is worth
  float norm, lost;  // ‖x‖ and ‖x − x̂‖, rounded upwards; NaN or infinite where nothing may be concluded
};

// The residual codes of one neuron, r + 8, and what they leave.
struct ResidualRow {
  const std::uint8_t* codes;
  float scale, error, coded;  // error as above, of what both codes leave; coded = ‖ŵ + scale·r‖
};

// Memory that will be read soon. What a kernel reads next is prefetched while another one computes, so that memory is
// never idle: weights while codes are read, codes while weights are used.
struct WantedBytes {
  const char* at;
  std::size_t bytes;
};

FEWFIRE_DECLARE(
    // Codes of a row, into two arrays that are aligned to 64 bytes.
    void code_row(const float* row, std::size_t inputs, std::int8_t* high, std::int8_t* low, CodedRow& coded);
    // open[q]: the neurons of the group (bit i: neuron i) that may be above thresholds[q] for row q;
    // approximate[64·q + i]: ⟨ŵ, x̂⟩ + b.
    void screen_group(const NeuronGroup& group, std::size_t coded, const CodedRow* rows, std::size_t count,
                      const float* thresholds, const WantedBytes* wanted, std::size_t wanted_count, std::uint64_t* open,
                      float* approximate);
    // Whether a neuron with this ⟨ŵ, x̂⟩ + b may fire, by its residual codes.
    bool stays_open(const ResidualRow& residual, std::size_t coded, const CodedRow& row, float approximate,
                    float threshold);
    // The score that decides. As many bytes of `upcoming` are prefetched as are read of the weights.
    float neuron_score(const float* weights, const float* row, std::size_t inputs, float bias, const char* upcoming);
    // Words of bfloat16 (`brain`) or float16 as floats, which they are exactly.
    void widen(const std::uint16_t* words, std::size_t count, bool brain, float* out);
    // sums += Σ_k factors[k]·rows[k], in this order.
    void add_rows(float* sums, const float* const* rows, const float* factors, std::size_t count, std::size_t length,
                  const char* upcoming);)

}  // namespace fewfire
