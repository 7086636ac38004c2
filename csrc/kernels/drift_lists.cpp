#include "kernels/drift_lists.hpp"

#include "kernels/drift_refresh.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Scores neurons neuron_of(0) … neuron_of(count − 1) on all anchors, four at a time; use(k, scores) gets each row.
template <class NeuronOf, class Use>
void for_scored(const DriftNet& net, DriftPiece& piece, std::size_t count, const NeuronOf& neuron_of, const Use& use) {
  for (std::size_t first = 0; first < count; first += block_rows) {
    const std::size_t rows = std::min(block_rows, count - first);
    const float* w[block_rows];
    for (std::size_t r = 0; r < block_rows; ++r)
      w[r] = net.weights.data() + neuron_of(first + std::min(r, rows - 1)) * net.stride;
    score_anchors(w, net.transposed.data(), net.inputs, net.columns, piece.scores.data());
    for (std::size_t r = 0; r < rows; ++r) use(first + r, piece.scores.data() + r * net.columns);
  }
  piece.counts.refreshed += count;
}

// Which lists the call has to read, and how far; first refreshes those too short for it or grown too long.
void plan(const DriftNet& net, DriftPiece& piece, const DriftCall& call) {
  tidy(piece);
  const auto slots = static_cast<std::uint32_t>(piece.slots.size());
  piece.stale.clear();
  piece.visits.clear();
  const auto add = [&](std::uint32_t k, const DriftSlot& slot, std::uint32_t length) {
    piece.visits.push_back({k, slot.neuron, slot.first, length, slot.bias, slot.output});
  };
  for (std::uint32_t k = 0; k < slots; ++k) {
    const DriftBound& bound = piece.bounds[k];
    const float depth = need(net, bound, call, bound.moved);
    if (depth < bound.top) continue;
    DriftSlot& slot = piece.slots[k];
    const float still = need(net, bound, call, 0.0f);
    const std::uint32_t all = slot.ends[drift_levels - 1];
    const bool enough = in_range(slot, depth);
    if (enough || (all == net.examples && in_range(slot, still))) {
      const std::uint32_t length = enough ? slot.ends[level_of(slot, depth)] : all;
      slot.excess += static_cast<float>(length - slot.ends[level_of(slot, still)]);
      add(k, slot, length);
      if (slot.excess <= net.refresh_cost) continue;
      if (bound.moved * call.norm < 0.25f * slot.skin) slot.skin *= 0.5f;
    } else {
      slot.skin *= 2.0f;
      add(k, slot, all);
    }
    piece.stale.push_back(static_cast<std::uint32_t>(piece.visits.size() - 1));
  }
  for_scored(
      net, piece, piece.stale.size(), [&](std::size_t k) { return piece.visits[piece.stale[k]].neuron; },
      [&](std::size_t k, const float* scores) {
        DriftVisit& visit = piece.visits[piece.stale[k]];
        DriftSlot& slot = piece.slots[visit.slot];
        DriftBound& bound = piece.bounds[visit.slot];
        build_list(net, piece, slot, bound, scores);
        visit.first = slot.first;
        visit.length = slot.ends[level_of(slot, need(net, bound, call, 0.0f))];
        piece.emptied |= slot.ends[drift_levels - 1] == 0;
      });
  std::erase_if(piece.visits, [](const DriftVisit& visit) { return visit.length == 0; });
  std::size_t touched = 0;
  for (const DriftVisit& visit : piece.visits) touched += visit.length;
  piece.active.resize(std::max(touched, piece.active.size()));
  piece.active_ends.resize(piece.visits.size());
  piece.counts.touched += touched;
  piece.counts.rows += piece.visits.size();
  piece.counts.slots += slots;
}

constexpr std::size_t ahead = 8;  // visits between the prefetch of a row and its use

void prefetch(const DriftNet& net, const DriftPiece& piece, std::size_t visit) {
  if (visit >= piece.visits.size()) return;
  const float* w = net.weights.data() + piece.visits[visit].neuron * net.stride;
  for (std::size_t at = 0; at < std::min<std::size_t>(net.stride, 256); at += lanes) __builtin_prefetch(w + at);
  __builtin_prefetch(piece.ids.data() + piece.visits[visit].first);
}

template <bool gradients>
void visit_all(const DriftNet& net, DriftPiece& piece, const DriftCall& call) {
  const std::size_t stride = net.stride;
  std::uint32_t fired = 0;
  for (std::size_t at = 0; at < piece.visits.size(); ++at) {
    prefetch(net, piece, at + ahead);
    const DriftVisit& visit = piece.visits[at];
    const float* w = net.weights.data() + visit.neuron * stride;
    const std::uint32_t* ids = piece.ids.data() + visit.first;
    for_active(w, visit.bias, net.threshold, call.rows, stride, ids, visit.length,
               [&](std::size_t position, float z) {
                 const std::uint32_t i = ids[position];
                 piece.active[fired++] = i;
                 ++piece.fired[i];
                 piece.values[i] += static_cast<double>(visit.output) * z;
                 if constexpr (gradients) {
                   float* sum = piece.gradients.data() + i * stride;
                   const Floats output = spread(visit.output);
                   for (std::size_t k = 0; k < stride; k += lanes)
                     store(sum + k, load(sum + k) + output * load(w + k));
                 }
               });
    piece.active_ends[at] = fired;
  }
  piece.counts.active += fired;
  if (gradients) piece.counts.summed += fired;
}

// The ids in ascending order, through a set of bits: sums over them then do not depend on the order of the list.
void sort_ids(std::uint32_t* ids, std::size_t count, std::vector<std::uint64_t>& bits) {
  std::size_t low = bits.size(), high = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t word = ids[k] / 64;
    bits[word] |= std::uint64_t{1} << ids[k] % 64;
    low = std::min(low, word);
    high = std::max(high, word);
  }
  for (std::size_t word = low; count > 0 && word <= high; ++word) {
    for (std::uint64_t left = bits[word]; left != 0; left &= left - 1)
      *ids++ = static_cast<std::uint32_t>(64 * word + static_cast<std::size_t>(__builtin_ctzll(left)));
    bits[word] = 0;
  }
}

}  // namespace

void drift_start(const DriftNet& net, DriftPiece& piece) {
  piece.scores.resize(block_rows * net.columns);
  piece.picked.resize(2 * net.examples);
  piece.bits.assign((net.examples + 63) / 64, 0);
  for_scored(
      net, piece, piece.end - piece.begin, [&](std::size_t k) { return piece.begin + k; },
      [&](std::size_t k, const float* scores) {
        const std::size_t neuron = piece.begin + k;
        DriftSlot slot{};
        DriftBound bound{};
        slot.neuron = static_cast<std::uint32_t>(neuron);
        slot.skin = net.first_skin;
        slot.bias = net.bias[neuron];
        slot.output = net.output[neuron];
        build_list(net, piece, slot, bound, scores);
        if (slot.ends[drift_levels - 1] == 0) return;
        piece.slots.push_back(slot);
        piece.bounds.push_back(bound);
      });
}

void drift_pass(const DriftNet& net, DriftPiece& piece, const DriftCall& call, bool gradients) {
  plan(net, piece, call);
  piece.values.assign(net.examples, 0.0);
  piece.fired.assign(net.examples, 0);
  if (gradients) piece.gradients.assign(net.examples * net.stride, 0.0f);
  gradients ? visit_all<true>(net, piece, call) : visit_all<false>(net, piece, call);
}

void drift_update(DriftNet& net, DriftPiece& piece, const DriftCall& call, const float* slopes, float rate) {
  const std::size_t stride = net.stride;
  constexpr std::size_t chunk = 4 * lanes;
  for (std::size_t at = 0; at < piece.visits.size(); ++at) {
    const std::uint32_t begin = at == 0 ? 0 : piece.active_ends[at - 1], end = piece.active_ends[at];
    const std::size_t soon = at + 2 * ahead;  // most lists read did not fire
    if (soon < piece.visits.size() && piece.active_ends[soon] > piece.active_ends[soon - 1]) prefetch(net, piece, soon);
    if (begin == end) continue;
    const DriftVisit& visit = piece.visits[at];
    float* w = net.weights.data() + visit.neuron * stride;
    std::uint32_t* ids = piece.active.data() + begin;
    sort_ids(ids, end - begin, piece.bits);
    const Floats factor = spread(-rate * visit.output);
    Floats squares{};
    for (std::size_t from = 0; from < stride; from += chunk) {
      const std::size_t vectors = std::min(chunk, stride - from) / lanes;
      Floats sums[4] = {};
      for (std::uint32_t k = 0; k < end - begin; ++k) {
        const float* x = call.rows + ids[k] * stride + from;
        const Floats slope = spread(slopes[ids[k]]);
        for (std::size_t v = 0; v < vectors; ++v) sums[v] += slope * load(x + v * lanes);
      }
      for (std::size_t v = 0; v < vectors; ++v) {
        const Floats before = load(w + from + v * lanes), after = before + factor * sums[v], change = after - before;
        store(w + from + v * lanes, after);
        squares += change * change;
      }
    }
    float& moved = piece.bounds[visit.slot].moved;
    moved = (moved + norm_above(net, squares)) * up;
    piece.counts.updated += 1;
    piece.counts.summed += end - begin;
  }
}

bool drift_missing(const DriftNet& net, const DriftPiece& piece, const DriftCall& call, std::uint64_t* pair) {
  std::vector<std::uint32_t> all(net.examples);
  for (std::uint32_t i = 0; i < net.examples; ++i) all[i] = i;
  auto slot = piece.slots.begin();
  std::vector<bool> listed(net.examples);
  for (std::size_t neuron = piece.begin; neuron < piece.end; ++neuron) {
    while (slot != piece.slots.end() && slot->neuron < neuron) ++slot;
    std::fill(listed.begin(), listed.end(), false);
    if (slot != piece.slots.end() && slot->neuron == neuron) {
      const DriftBound& bound = piece.bounds[static_cast<std::size_t>(slot - piece.slots.begin())];
      const float depth = need(net, bound, call, bound.moved);
      if (!in_range(*slot, depth)) continue;  // refreshed before it is read again
      const std::uint32_t read = depth < bound.top ? 0 : slot->ends[level_of(*slot, depth)];
      for (std::uint32_t k = 0; k < read; ++k) listed[piece.ids[slot->first + k]] = true;
    }
    bool missing = false;
    for_active(net.weights.data() + neuron * net.stride, net.bias[neuron], net.threshold, call.rows, net.stride,
               all.data(), all.size(), [&](std::size_t i, float) {
                 if (listed[i] || missing) return;
                 missing = true;
                 pair[0] = neuron;
                 pair[1] = i;
               });
    if (missing) return true;
  }
  return false;
}

}  // namespace fewfire::FEWFIRE_ISA
