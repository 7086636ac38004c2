// Drift lists: which (neuron, example) pairs can be active, kept while weights and examples move.
//
// A neuron r fires on a moved example x̃_i when ⟨w_r, x̃_i⟩ + b_r > τ. Scores cannot change faster than weights and
// examples move: between a check at (w, x̃) and a later call at (w′, x̃′)
//
//   |⟨w′, x̃′⟩ − ⟨w, x̃⟩| ≤ ‖w‖·‖x̃′ − x̃‖ + ‖w′ − w‖·‖x̃′‖.
//
// Lists. With w⁰ the weights at the neuron's last refresh and s⁰ its score on the resting example (the anchor), only pairs
// with τ − s⁰ ≤ ‖w⁰‖·reach + skin can fire before the weights have moved by skin/max‖x̃‖: they are the neuron's list, and
// then it is scored on all anchors anew. A neuron with no list cannot fire, so it does not move, so it needs none: it is
// not touched again.
//
// Alarms. Of a list few pairs are near the threshold. A pair that was scored at a distance |z − τ| from it keeps its side
// until the bound above allows otherwise. So each pair has an alarm: what an odometer shows when it has to be scored
// again. An adversary goes back and forth between few places: the anchors, and where it was in the iteration before.
// Each such place is a site, with alarms of its own and a reference for every example, which is replaced when they have
// moved too far from it. With d the largest distance from the references and base the sum of the steps that these have
// taken, ‖x̃′ − x̃‖ ≤ (base′ + d′) − (base − d), so the odometer shows
//
//   base + d + strain,   strain = ‖w⁰‖⁻¹·max‖x̃‖·(path of the weights since the refresh),
//
// and the alarm of a pair scored now is base − d + strain + (|z − τ| − margin)/‖w‖, where the margin covers the rounding
// of every score involved. Alarms are rounded down, what the odometer shows up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned.hpp"
#include "base/cpu.hpp"

namespace fewfire {

// Places with alarms: the anchors (site 0, which stays) and those that follow the adversary.
constexpr std::size_t most_sites = 3;

// A neuron with a list, in one cache line: entries first … first + length, examples ascending. Bounds are rounded up.
struct alignas(64) DriftSlot {
  std::uint32_t neuron, first, length, capacity;
  float bias, output;
  float norm;   // ‖w⁰‖
  float fixed;  // the margin at w⁰
  float rate;   // what the odometer shows per unit of movement of the weights
  float limit;  // the strain up to which the list holds
  float skin;
  std::uint32_t made;  // in which pass
};
static_assert(sizeof(DriftSlot) == 64);

struct DriftCounts {
  // Pairs: active, in lists that were read, scored, summed into gradients or updates.
  std::uint64_t active = 0, touched = 0, scored = 0, summed = 0;
  // Neurons: with a list, list read, weights changed, scored on all anchors.
  std::uint64_t slots = 0, lists = 0, updated = 0, refreshed = 0;
};

// Alarms of one site. A sign bit marks what fires: the pair itself, or some pair of the neuron.
struct DriftAlarms {
  AlignedVector<std::uint16_t> pairs;  // of each entry: the upper half of a float, the rest cut off
  AlignedVector<float> neurons;        // of each slot: the first of its pairs
};

// The entries of all lists, in few bytes: reading them is most of what a pass does. The first belongs to no list.
struct DriftEntries {
  AlignedVector<std::uint16_t> low, high;  // the example; high is empty for up to 2^16 of them

  std::size_t size() const { return low.size(); }
  std::uint32_t operator[](std::size_t at) const {
    return low[at] | (high.empty() ? 0u : static_cast<std::uint32_t>(high[at]) << 16);
  }
};

// A slot that a pass visits: what of its list is to be scored, in blocks of eight, and what that takes.
struct DriftVisit {
  std::uint32_t slot, neuron, first, length, blocks;
  float bias, output;
  float start, margin, inverse;  // of its alarms
  float others;                  // the first alarm of what is not scored
};

// A range of neurons with all that a pass over it writes: one thread works on it at a time.
struct DriftPiece {
  std::size_t begin = 0, end = 0;
  AlignedVector<DriftSlot> slots;  // by ascending neuron
  AlignedVector<float> strains;    // of each slot: rate·Σ‖Δw‖ since the refresh, rounded up
  DriftEntries ids;
  DriftAlarms alarms[most_sites];
  std::size_t garbage = 0;  // entries that no slot owns
  std::uint32_t passes = 0;
  std::vector<std::uint32_t> stale;  // slots whose strain is beyond its limit
  // The last pass: slots that fired and the examples on which they did (ends by slot).
  std::vector<std::uint32_t> firing, active_ends, active;
  AlignedVector<float> gradients;  // examples × stride
  std::vector<double> values;      // examples
  // Scratch: scores of a refresh (4 × columns), slots to visit; of a batch of them the visits, the entries to score with
  // their places and new alarms, their visits and how many there are by block; scores of the active.
  AlignedVector<float> scores;
  std::vector<std::uint32_t> due;
  std::vector<DriftVisit> visits;
  AlignedVector<std::uint32_t> picked, places;
  AlignedVector<float> alarmed, active_scores;
  std::vector<std::uint32_t> block_visits, block_masks;
  DriftCounts counts;

  std::size_t last_active() const { return active_ends.empty() ? 0 : active_ends.back(); }
};

// What all pieces share.
struct DriftNet {
  std::size_t width = 0, inputs = 0, stride = 0, examples = 0, columns = 0;
  float threshold = 0.0f, reach = 0.0f, norm_limit = 0.0f, first_skin = 0.0f;
  float rounding = 0.0f;  // margin = rounding·((‖w⁰‖ + moved)·norm_limit + |b| + |τ|)
  std::size_t sites = 1;
  // Of each site, without strain: what its odometer shows, rounded up, from where alarms set now count, and from where
  // those count that are set by scores on the anchors, both rounded down.
  float reading[most_sites] = {}, start[most_sites] = {}, anchor_start[most_sites] = {};
  AlignedVector<float> weights;     // width × stride
  std::vector<float> bias, output;  // width
  AlignedVector<float> anchors;     // examples × stride
  AlignedVector<float> transposed;  // inputs × columns: anchors
};

// Where the examples are in one call, rows of `stride` floats, and the site that is there.
struct DriftCall {
  const float* rows = nullptr;
  std::size_t site = 0;
};

FEWFIRE_DECLARE(
    // Scores every neuron of the piece on every anchor and starts its lists.
    void drift_start(const DriftNet& net, DriftPiece& piece);
    // The active pairs and Σ a_r σ(z_r) over the piece at the moved examples. With gradients, those of f are summed, and
    // `values` holds Σ a_r b_r over active pairs alone: the rest of f is ⟨∇f, x̃⟩.
    void drift_pass(const DriftNet& net, DriftPiece& piece, const DriftCall& call, bool gradients);
    // w_r −= rate·a_r·Σ slope_i x̃_i over the examples that the last pass found active.
    void drift_update(DriftNet& net, DriftPiece& piece, const DriftCall& call, const float* slopes, float rate);
    // The first pair (neuron, example) whose side the lists and alarms have wrong; false when there is none.
    bool drift_missing(const DriftNet& net, const DriftPiece& piece, const DriftCall& call, std::uint64_t* pair);)

}  // namespace fewfire
