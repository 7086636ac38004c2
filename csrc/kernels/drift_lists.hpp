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

#include "core/aligned.hpp"
#include "core/cpu.hpp"

namespace fewfire {

constexpr std::size_t drift_levels = 24;  // level 0: s⁰ > τ; the others divide the depth evenly

// The bound of a neuron with a list, apart from the rest: most calls need no more of most neurons. All rounded up.
struct DriftBound {
  float norm;   // ‖w⁰‖
  float fixed;  // the margin at w⁰
  float moved;  // Σ‖Δw‖ since the refresh
  float top;    // depth of the list's first entry, rounded down
};

// A neuron with a list, in two cache lines. Entries of level l and below: ids[first … first + ends[l]).
struct alignas(64) DriftSlot {
  std::uint32_t neuron, first, capacity;
  float levels_per_unit;  // of depth
  float skin;
  float excess;  // pairs visited since the refresh that a fresh list would have left out
  float bias, output;
  std::uint32_t ends[drift_levels];
};
static_assert(sizeof(DriftSlot) == 128);

// A list to be read, with what that takes.
struct DriftVisit {
  std::uint32_t slot, neuron, first, length;
  float bias, output;
};

struct DriftCounts {
  std::uint64_t active = 0, touched = 0, summed = 0, rows = 0, updated = 0, refreshed = 0, slots = 0;
};

// A range of neurons with all that a pass over it writes: one thread works on it at a time.
struct DriftPiece {
  std::size_t begin = 0, end = 0;
  AlignedVector<DriftSlot> slots;  // by ascending neuron
  AlignedVector<DriftBound> bounds;  // of each slot
  std::vector<std::uint32_t> ids;
  std::size_t garbage = 0;  // entries of `ids` that no slot owns
  bool emptied = false;     // some slot lost its last entry
  // The last pass: lists read, the examples each fired on (ends by visit), and scratch.
  std::vector<DriftVisit> visits;
  std::vector<std::uint32_t> active, active_ends, stale;
  AlignedVector<float> gradients;     // examples × stride
  std::vector<double> values;         // examples
  std::vector<std::uint32_t> fired;   // examples: active neurons of this piece
  AlignedVector<float> scores;        // scratch of a refresh: 4 × columns
  std::vector<std::uint32_t> picked;  // scratch
  std::vector<std::uint64_t> bits;    // scratch of an update: one bit an example
  DriftCounts counts;
};

// What all pieces share.
struct DriftNet {
  std::size_t width = 0, inputs = 0, stride = 0, examples = 0, columns = 0;
  float threshold = 0.0f, reach = 0.0f, norm_limit = 0.0f, first_skin = 0.0f;
  float rounding = 0.0f;      // margin = rounding·((‖w⁰‖ + moved)·norm_limit + |b| + |τ|)
  float refresh_cost = 0.0f;  // of one neuron, in pairs visited
  AlignedVector<float> weights;     // width × stride
  std::vector<float> bias, output;  // width
  AlignedVector<float> anchors;     // examples × stride
  AlignedVector<float> transposed;  // inputs × columns: anchors
};

// Where the examples are in one call: rows of `stride` floats.
struct DriftCall {
  const float* rows = nullptr;
  float distance = 0.0f, norm = 0.0f;
};

FEWFIRE_DECLARE(
    // Scores every neuron of the piece on every anchor and starts its lists.
    void drift_start(const DriftNet& net, DriftPiece& piece);
    // f without its offset, the active pairs and, if wanted, ∇f at the moved examples, summed over the piece.
    void drift_pass(const DriftNet& net, DriftPiece& piece, const DriftCall& call, bool gradients);
    // w_r −= rate·a_r·Σ slope_i x̃_i over the examples that the last pass found active.
    void drift_update(DriftNet& net, DriftPiece& piece, const DriftCall& call, const float* slopes, float rate);
    // The first pair (neuron, example) that fires and that the lists would miss; false when there is none.
    bool drift_missing(const DriftNet& net, const DriftPiece& piece, const DriftCall& call, std::uint64_t* pair);)

}  // namespace fewfire
