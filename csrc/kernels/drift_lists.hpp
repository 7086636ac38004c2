// Drift lists: which (neuron, example) pairs can be active, kept while weights and examples move.
//
// A neuron r fires on a moved example x̃_i when ⟨w_r, x̃_i⟩ + b_r > τ. With w⁰ the weights at the neuron's last refresh and
// s⁰ = ⟨w⁰, x_i⟩ + b_r its score on the resting example (the anchor),
//
//   ⟨w, x̃⟩ + b ≤ s⁰ + ‖w⁰‖·‖x̃ − x‖ + ‖w − w⁰‖·‖x̃‖,
//
// so only pairs with τ − s⁰ ≤ need = ‖w⁰‖·distance + moved·norm + margin can fire, where `moved` is Σ‖Δw‖ since the
// refresh, `distance` and `norm` are the largest ‖x̃ − x‖ and ‖x̃‖ of the call and `margin` covers the rounding of every
// score involved. A list holds the pairs up to a depth τ − s⁰ ≤ ‖w⁰‖·reach + skin + margin, ordered by depth in
// `drift_levels` levels: a visit reads the levels up to `need`, so unused skin costs memory only. A neuron whose need
// outgrows its list, or whose extra visits have cost as much as a refresh, is scored on all anchors anew. A neuron
// with no list cannot fire, so it does not move, so it needs none: it is not touched again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned.hpp"
#include "base/cpu.hpp"

namespace fewfire {

constexpr std::size_t drift_levels = 18;  // level 0: s⁰ > τ; the others divide the depth evenly

// The bound of a neuron with a list, apart from the rest: most calls need no more of most neurons. All rounded up.
struct DriftBound {
  float norm;   // ‖w⁰‖
  float fixed;  // the margin at w⁰
  float moved;  // Σ‖Δw‖ since the refresh
  float top;    // depth of the list's first entry, rounded down
};

// A neuron with a list, in one cache line. Entries of level l and below: the first ends[l]·unit of ids[first …
// first + length), where unit is 1 for fewer than 2^16 examples.
struct alignas(64) DriftSlot {
  std::uint32_t neuron, first, length, capacity;
  float levels_per_unit;  // of depth
  float skin;
  float excess;  // pairs visited since the refresh that a fresh list would have left out
  std::uint16_t ends[drift_levels];
};
static_assert(sizeof(DriftSlot) == 64);

// w⁰ ≈ scale·code, to `error` in norm; `sum` is that of the code.
struct DriftCode {
  float scale, error;
  std::int32_t sum;
};

// A list to be read, with what that takes. Pairs whose 8-bit score is not above `cutoff` cannot fire.
struct DriftVisit {
  std::uint32_t slot, neuron, first, length;
  float bias, output;
  std::int32_t cutoff;
  bool screened;
};

struct DriftCounts {
  // Pairs: active, read from lists, scored in 8 bits, scored in float32, summed into gradients or updates.
  std::uint64_t active = 0, touched = 0, screened = 0, scored = 0, summed = 0;
  // Neurons: with a list, list read, weights read to score, weights changed, scored on all anchors.
  std::uint64_t slots = 0, lists = 0, rows = 0, updated = 0, refreshed = 0;
};

// A range of neurons with all that a pass over it writes: one thread works on it at a time.
struct DriftPiece {
  std::size_t begin = 0, end = 0;
  AlignedVector<DriftSlot> slots;  // by ascending neuron
  // Of each slot:
  AlignedVector<DriftBound> bounds;
  std::vector<DriftCode> codes;
  AlignedVector<std::int8_t> code_rows;  // rows of `code_stride`
  std::vector<std::uint32_t> ids;
  std::size_t garbage = 0;  // entries of `ids` that no slot owns
  bool emptied = false;     // some slot lost its last entry
  // The last pass: lists read and the examples that each fired on (ends by visit).
  std::vector<DriftVisit> visits;
  std::vector<std::uint32_t> active, active_ends;
  AlignedVector<float> gradients;  // examples × stride
  std::vector<double> values;      // examples
  // Scratch: scores of a refresh (4 × columns), entries of a list, visits to refresh, scores of the active, one bit per
  // example.
  AlignedVector<float> scores;
  std::vector<std::uint32_t> picked, stale;
  std::vector<float> active_scores;
  std::vector<std::uint64_t> bits;
  DriftCounts counts;

  std::size_t last_active() const { return active_ends.empty() ? 0 : active_ends.back(); }
};

// What all pieces share.
struct DriftNet {
  std::size_t width = 0, inputs = 0, stride = 0, code_stride = 0, examples = 0, columns = 0;
  std::uint32_t unit = 1;
  float threshold = 0.0f, reach = 0.0f, norm_limit = 0.0f, first_skin = 0.0f;
  float rounding = 0.0f;      // margin = rounding·((‖w⁰‖ + moved)·norm_limit + |b| + |τ|)
  float refresh_cost = 0.0f;  // of one neuron, in pairs visited
  AlignedVector<float> weights;     // width × stride
  std::vector<float> bias, output;  // width
  AlignedVector<float> anchors;     // examples × stride
  AlignedVector<float> transposed;  // inputs × columns: anchors
};

// Where the examples are in one call: rows of `stride` floats, largest distance from the anchors and norm; the same in
// 8 bits, x ≈ code_scale·(code − 128) to code_error in norm, rows of `code_stride`.
struct DriftCall {
  const float* rows = nullptr;
  const std::uint8_t* codes = nullptr;
  float distance = 0.0f, norm = 0.0f, code_scale = 1.0f, code_error = 0.0f;
};

FEWFIRE_DECLARE(
    // Scores every neuron of the piece on every anchor and starts its lists.
    void drift_start(const DriftNet& net, DriftPiece& piece);
    // f without its offset, the active pairs and, if wanted, ∇f at the moved examples, summed over the piece.
    void drift_pass(const DriftNet& net, DriftPiece& piece, const DriftCall& call, bool gradients);
    // Writes the 8-bit rows of the call, and its code_scale and code_error.
    void drift_codes(const DriftNet& net, DriftCall& call, std::uint8_t* codes);
    // w_r −= rate·a_r·Σ slope_i x̃_i over the examples that the last pass found active.
    void drift_update(DriftNet& net, DriftPiece& piece, const DriftCall& call, const float* slopes, float rate);
    // The first pair (neuron, example) that fires and that the lists would miss; false when there is none.
    bool drift_missing(const DriftNet& net, const DriftPiece& piece, const DriftCall& call, std::uint64_t* pair);)

}  // namespace fewfire
